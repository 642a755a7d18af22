"""`kind: Defaults` and `kind: Variables`."""

from __future__ import annotations

from pathlib import Path

from .layer_files import IMAGES, LAKE, VISION, documents, folder, loaded, told

DEFAULTS = "kind: Defaults\nmetadata: {catalog: lake}\nspec:\n"
LABELS = IMAGES.replace("images", "labels").replace("{team: vision}", "{tier: gold}")


def test_the_object_wins_key_by_key_and_lists_replace(tmp_path: Path) -> None:
    shared = (
        "  match: ['vision.**']\n  except: [vision.labels]\n  properties: {team: none, cost: '7'}\n"
        "  protect: true\n  schemaMode: at_least\n  allow: [drop_index]\n  ignoreDifferences: [properties.seen]\n"
        "  maintenance: {cleanup: {olderThan: 30d}, compact: {minSmallFragments: 3}}\n"
    )
    own = IMAGES + "  allow: [drop_column]\n  maintenance: {cleanup: {olderThan: 60d}}\n"
    found = loaded(folder(tmp_path, base=documents(DEFAULTS + shared, LAKE, VISION, own, LABELS)))
    assert found.diagnostics == []
    tables = found.desired.tables["lake"]
    images, labels = tables["vision", "images"], tables["vision", "labels"]
    assert dict(images.properties) == {"team": "vision", "cost": "7"}
    assert (images.protect, images.at_least, images.allow) == (True, True, ("drop_column",))
    assert images.ignore_differences == ("properties.seen",)
    assert images.maintenance is not None
    assert images.maintenance.cleanup is not None
    assert images.maintenance.compact is not None
    assert images.maintenance.cleanup.older_than == 60 * 86400
    assert images.maintenance.compact.min_small == 3
    assert (dict(labels.properties), labels.protect, labels.allow) == ({"tier": "gold"}, None, ())
    assert found.desired.namespaces["lake"][("vision",)].protect is None, "they are for tables when nothing is said"
    assert images.source.line == 23, "a step is told at the object's own document"


def test_what_they_add_is_part_of_the_digest(tmp_path: Path) -> None:
    def digest(value: str) -> str:
        text = documents(DEFAULTS + f"  properties: {{cost: '{value}'}}\n", LAKE, VISION, IMAGES)
        return loaded(folder(tmp_path, base=text)).desired.digest

    written_out = documents(LAKE, VISION, IMAGES.replace("{team: vision}", "{team: vision, cost: '7'}"))
    assert digest("7") != digest("8")
    assert digest("7") == loaded(folder(tmp_path, base=written_out)).desired.digest


def test_namespaces_get_what_they_can_have(tmp_path: Path) -> None:
    shared = DEFAULTS + "  kinds: [Namespace, Table]\n  properties: {cost: '7'}\n  schemaMode: at_least\n"
    found = loaded(folder(tmp_path, base=documents(shared, LAKE, VISION, IMAGES)))
    assert found.diagnostics == []
    assert dict(found.desired.namespaces["lake"][("vision",)].properties) == {"cost": "7"}
    only = shared.replace("[Namespace, Table]", "[Namespace]")
    assert told(loaded(folder(tmp_path, base=documents(only, LAKE, VISION)))) == [("M503", "base.yaml", 7)]


def test_a_bad_default_is_told_at_its_own_place_with_the_object(tmp_path: Path) -> None:
    shared = DEFAULTS + "  properties:\n    reconciler.owner: me\n  checks: {notNull: [nope]}\n"
    found = loaded(folder(tmp_path, base=documents(shared, LAKE, VISION, IMAGES)))
    assert told(found) == [("M430", "base.yaml", 6), ("M450", "base.yaml", 7)]
    assert all("(default for table lake:vision.images)" in d.message for d in found.diagnostics)
    many = [IMAGES.replace("images", f"t{n}") for n in range(300)]
    found = loaded(folder(tmp_path, base=documents(shared, LAKE, VISION, *many)))
    assert len(found.diagnostics) == 101, "one bad default for many tables is not a flood"


def test_a_default_that_only_some_can_use_is_no_warning_for_the_others(tmp_path: Path) -> None:
    from reconciler.catalog.registry import capabilities_of
    from reconciler.manifest.load import load

    text = documents(DEFAULTS + "  allow: [purge_data]\n", LAKE, VISION, IMAGES)
    assert load([str(folder(tmp_path, base=text))], capabilities_of=capabilities_of).diagnostics == []


def test_mistakes_in_the_document_itself_are_told_once(tmp_path: Path) -> None:
    shared = (
        DEFAULTS + "  match: []\n  propertys: {a: b}\n  properties: {n: 1}\n  allow: [everything]\n  location: s3://x\n"
        "  maintenance: {cleanup: {olderThan: 14}}\n"
    )
    found = loaded(folder(tmp_path, base=documents(shared, LAKE, VISION, IMAGES, LABELS)))
    assert [(code, line) for code, _, line in told(found)] == [
        ("M210", 5),
        ("M203", 6),
        ("M206", 7),
        ("M207", 8),
        ("M203", 9),
        ("M206", 10),
    ]


def test_two_that_disagree_are_an_error_that_names_both(tmp_path: Path) -> None:
    first = DEFAULTS.replace("lake}", "lake, name: a}") + "  properties: {cost: '7', same: x}\n"
    second = DEFAULTS.replace("lake}", "lake, name: b}") + "  match: ['*.images']\n  properties: {cost: '8', same: x}\n"
    path = folder(tmp_path, base=documents(first, second, LAKE, VISION, IMAGES, LABELS))
    found = loaded(path)
    assert told(found) == [("M502", "base.yaml", 12)]
    assert "base.yaml:1;" in found.diagnostics[0].message
    assert "table lake:vision.images" in found.diagnostics[0].message
    own = IMAGES.replace("{team: vision}", "{cost: '9'}")
    found = loaded(folder(tmp_path, base=documents(first, second, LAKE, VISION, own, LABELS)))
    assert found.diagnostics == [], "the object's own value settles it"
    assert dict(found.desired.tables["lake"]["vision", "images"].properties) == {"cost": "9", "same": "x"}


def test_one_catalog_has_one_without_a_name(tmp_path: Path) -> None:
    text = documents(DEFAULTS + "  protect: true\n", DEFAULTS + "  protect: true\n", LAKE, VISION, IMAGES)
    assert told(loaded(folder(tmp_path, base=text))) == [("M500", "base.yaml", 9)]


def test_what_no_object_gets_is_a_warning(tmp_path: Path) -> None:
    shared = DEFAULTS + "  match: ['vision.*', 'visoin.**']\n  protect: true\n"
    path = folder(tmp_path, base=documents(shared, LAKE, VISION, IMAGES))
    assert [(d.code, d.severity, d.source.line, d.source.column) for d in loaded(path).diagnostics] == [
        ("M501", "warning", 5, 23)
    ]
    path = folder(tmp_path, base=documents(DEFAULTS + "  protect: true\n", LAKE, VISION))
    assert told(loaded(path)) == [("M501", "base.yaml", 3)]
    unknown = DEFAULTS.replace("lake", "lak") + "  protect: true\n"
    found = loaded(folder(tmp_path, base=documents(unknown, LAKE, VISION)))
    assert told(found) == [("M402", "base.yaml", 3)]
    assert found.diagnostics[0].hint == "did you mean lake?"


def test_an_overlay_changes_defaults(tmp_path: Path) -> None:
    base = documents(DEFAULTS + "  properties: {cost: '7', env: dev}\n", LAKE, VISION, IMAGES)
    patch = documents(DEFAULTS + "  properties: {env: prod, reconciler.x: y}\n")
    path = folder(tmp_path, base=base, prod=patch)
    assert told(loaded(path, "prod")) == [("M430", "patch.yaml", 5)]
    path = folder(tmp_path, prod=patch.replace(", reconciler.x: y", ""))
    images = loaded(path, "prod").desired.tables["lake"]["vision", "images"]
    assert dict(images.properties) == {"team": "vision", "cost": "7", "env": "prod"}


def test_defaults_hold_references_and_types_as_objects_do(tmp_path: Path) -> None:
    shared = DEFAULTS + "  properties: {cost: '${var:cost}'}\n  protect: ${var:safe}\n"
    path = folder(tmp_path, base=documents(shared, LAKE, VISION, IMAGES))
    images = loaded(path, cost="7", safe="true").desired.tables["lake"]["vision", "images"]
    assert (images.properties["cost"], images.protect) == ("7", True)
    assert told(loaded(path, safe="true")) == [("M301", "base.yaml", 5)]


# -- variables -----------------------------------------------------------------------------------------------------

VARIABLES = "kind: Variables\nspec:\n  values: {cost: '7', root: ./lake}\n"
USES = LAKE.replace("./lake", "'${var:root}'")


def test_the_command_line_wins_over_the_overlay_over_the_base(tmp_path: Path) -> None:
    patch = documents("kind: Variables\nspec: {values: {root: ./prod}}\n")
    path = folder(tmp_path, base=documents(USES, VARIABLES), prod=patch)

    def root(environment: str = "", **variables: str) -> object:
        found = loaded(path, environment, **variables)
        assert found.diagnostics == []
        return found.desired.catalogs["lake"].options["path"]

    assert (root(), root("prod"), root("prod", root="./x"), root(root="./x")) == ("./lake", "./prod", "./x", "./x")


def test_mistakes_with_variables(tmp_path: Path) -> None:
    more = "kind: Variables\nmetadata: {name: more}\nspec:\n  values: {root: x, a: '${env:HOME}', b: 1}\n"
    path = folder(tmp_path, base=documents(USES, VARIABLES, more.replace(", b: 1", "")))
    assert [(c, line) for c, _, line in told(loaded(path))] == [("M520", 15), ("M304", 15)]
    path = folder(tmp_path, base=documents(USES, VARIABLES, more, more))
    assert [(c, line) for c, _, line in told(loaded(path))] == [("M206", 15), ("M206", 21)]
    path = folder(tmp_path, base=documents(USES.replace("root", "rot"), VARIABLES))
    found = loaded(path)
    assert told(found) == [("M301", "base.yaml", 4)]
    assert found.diagnostics[0].hint == "did you mean root?"
    bad = VARIABLES.replace("cost", "'a b'")
    assert [c for c, *_ in told(loaded(folder(tmp_path, base=documents(USES, bad))))] == ["M301", "M207"]


def test_the_kind_must_be_seen_in_the_text(tmp_path: Path) -> None:
    for kind in ('"Vari\\u0061bles"', "${var:kind}"):
        text = documents(LAKE, VARIABLES.replace("Variables", kind))
        found = loaded(folder(tmp_path, base=text), kind="Variables")
        assert told(found) == [("M504", "base.yaml", 7)], kind
