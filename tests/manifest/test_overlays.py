"""--env: what an overlay changes, and where its mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifest.identity import identity
from reconciler.manifest.layers import Layer
from reconciler.manifest.load import load
from reconciler.manifest.overlay import patched
from reconciler.manifest.sink import Sink
from reconciler.manifest.yaml_reader import Document

from .layer_files import IMAGES, LAKE, VISION, documents, folder, loaded, told

BASE = documents(LAKE, VISION, IMAGES)
IMAGES_IS = "kind: Table\nmetadata: {catalog: lake, id: [vision, images]}\n"


def test_mappings_are_merged_lists_replaced_and_null_removes(tmp_path: Path) -> None:
    base = documents(
        LAKE,
        VISION,
        "kind: Table\nmetadata: {catalog: lake, id: [vision, images]}\nspec:\n"
        "  properties: {team: vision, tier: gold}\n  allow: [drop_column, narrow_type]\n"
        "  maintenance: {cleanup: {olderThan: 14d}, compact: {minSmallFragments: 4}}\n",
    )
    patch = documents(
        IMAGES_IS + "spec:\n  properties: {tier: null, env: prod}\n  allow: [drop_index]\n"
        "  maintenance: {cleanup: {olderThan: 90d}}\n",
        "kind: Catalog\nmetadata: {name: lake}\nspec: {path: s3://prod/lake, management: {owner: prod}}\n",
    )
    path = folder(tmp_path, base=base, prod=patch)
    plain, prod = loaded(path), loaded(path, "prod")
    assert plain.diagnostics == prod.diagnostics == []
    table = prod.desired.tables["lake"][("vision", "images")]
    assert dict(table.properties) == {"team": "vision", "env": "prod"}
    assert table.allow == ("drop_index",)
    assert table.maintenance is not None
    assert table.maintenance.cleanup is not None
    assert table.maintenance.compact is not None
    assert table.maintenance.cleanup.older_than == 90 * 86400
    assert table.maintenance.compact.min_small == 4
    lake = prod.desired.catalogs["lake"]
    assert (lake.options["path"], lake.management.owner) == ("s3://prod/lake", "prod")
    assert table.source.file.endswith("base.yaml"), "a step is told at the base document"
    assert plain.desired.catalogs["lake"].options["path"] == "./lake"
    assert plain.desired.digest != prod.desired.digest


def test_anchors_and_merge_keys_of_both_sides(tmp_path: Path) -> None:
    base = documents(
        LAKE,
        VISION,
        IMAGES_IS + "spec:\n  properties: &p {a: '1', b: '2'}\n  config: {<<: *p, c: '3'}\n",
    )
    patch = documents(IMAGES_IS + "spec:\n  properties: &p {b: '9'}\n  config: {<<: *p, a: null}\n")
    found = loaded(folder(tmp_path, base=base, prod=patch), "prod")
    assert found.diagnostics == []
    table = found.desired.tables["lake"][("vision", "images")]
    assert dict(table.properties) == {"a": "1", "b": "9"}
    assert dict(table.config) == {"b": "9", "c": "3"}


def test_every_mistake_is_told_where_it_was_made(tmp_path: Path) -> None:
    patch = documents(
        IMAGES_IS + "spec:\n  protect: 'yes'\n  schemaMod: exact\n  properties: {gone: null, n: 1}\n",
        "kind: Table\nmetadata: {catalog: lake, id: [vision, imagse]}\nspec: {protect: true}\n",
        "kind: Catalog\nmetadata: {name: lake}\nspec:\n  path: null\n",
        "kind: Namespace\nmetadata: {catalog: lake, id: [vision]}\noverlay: add\n",
        "kind: Namespace\nmetadata: {catalog: lake}\n",
        "kind: Tabel\nmetadata: {catalog: lake}\n",
        "kind: Catalog\nmetadata: {name: lake}\nspec: {path: x}\n",
    )
    found = loaded(folder(tmp_path, base=BASE, prod=patch), "prod")
    assert told(found) == [
        ("M205", "patch.yaml", 5),
        ("M203", "patch.yaml", 6),
        ("M515", "patch.yaml", 7),
        ("M206", "patch.yaml", 7),
        ("M204", "patch.yaml", 18),
        ("M514", "patch.yaml", 23),
        ("M204", "patch.yaml", 27),
        ("M202", "patch.yaml", 30),
        ("M513", "patch.yaml", 33),
    ], "and nothing about vision.imagse: what a broken document would change is not known"


def test_a_patch_that_hits_nothing_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    patch = documents("kind: Table\nmetadata: {catalog: lake, id: [vision, imagse]}\nspec: {protect: true}\n")
    found = loaded(folder(tmp_path, base=BASE, prod=patch), "prod")
    assert told(found) == [("M512", "patch.yaml", 3)]
    assert "did you mean table lake:vision.images?" in found.diagnostics[0].hint
    assert "overlay: add" in found.diagnostics[0].hint


def test_an_error_of_the_base_stays_there(tmp_path: Path) -> None:
    broken = documents(LAKE, VISION, IMAGES_IS + "spec:\n  propertys: {a: b}\n  protect: true\n")
    patch = documents(IMAGES_IS + "spec: {protect: false}\n")
    assert told(loaded(folder(tmp_path, base=broken, prod=patch), "prod")) == [("M203", "base.yaml", 14)]


def test_an_addition_is_there_in_its_environment_only(tmp_path: Path) -> None:
    extra = documents("overlay: add\n" + IMAGES.replace("images", "probe"))
    path = folder(tmp_path, base=BASE, dev=extra, prod="")
    assert [*loaded(path, "dev").desired.tables["lake"]] == [("vision", "images"), ("vision", "probe")]
    for environment in ("", "prod"):
        found = loaded(path, environment)
        assert (found.diagnostics, [*found.desired.tables["lake"]]) == ([], [("vision", "images")])
    probe = loaded(path, "dev").desired.tables["lake"]["vision", "probe"]
    assert probe.source.file.endswith("overlays/dev/patch.yaml")
    path = folder(tmp_path, base=documents(LAKE, VISION, "overlay: add\n" + IMAGES))
    assert [code for code, *_ in told(loaded(path))] == ["M203"], "the word means nothing outside of an overlay"


def test_identities_may_be_written_with_variables(tmp_path: Path) -> None:
    base = documents(LAKE, VISION, IMAGES.replace("vision, images", '"${var:ns}", images'))
    path = folder(tmp_path, base=base, prod=documents(IMAGES_IS + "spec: {protect: true}\n"))
    found = loaded(path, "prod", ns="vision")
    assert found.diagnostics == []
    assert found.desired.tables["lake"]["vision", "images"].protect is True


@pytest.mark.parametrize("name", ["../prod", "..", ".", "/etc", "a/b", "prod/", "-x", ".git", "a\nb", "prod\0", " "])
def test_an_environment_is_a_name_and_no_path(tmp_path: Path, name: str) -> None:
    assert [c for c, *_ in told(loaded(folder(tmp_path, base=BASE, prod=""), name))] == ["M510"]


def test_an_unknown_environment_lists_those_that_exist(tmp_path: Path) -> None:
    path = folder(tmp_path, base=BASE, prod="", dev="")
    (path / "overlays" / "notes.txt").write_text("")
    found = loaded(path, "prd")
    assert [c for c, *_ in told(found)] == ["M511"]
    assert found.diagnostics[0].hint == "did you mean prod? environments: dev, prod"
    assert "none has a folder overlays/" in loaded(path / "base.yaml", "prod").diagnostics[0].hint


def test_overlays_further_down_belong_to_the_environment_too(tmp_path: Path) -> None:
    path = folder(tmp_path, base=BASE)
    deep = path / "team" / "overlays" / "prod" / "a" / "p.yaml"
    deep.parent.mkdir(parents=True)
    deep.write_text(documents(IMAGES_IS + "spec: {protect: true}\n"))
    assert loaded(path, "prod").desired.tables["lake"]["vision", "images"].protect is True


def test_a_broken_overlay_file_is_told_and_hides_no_other(tmp_path: Path) -> None:
    path = folder(tmp_path, base=BASE, prod="a: [\n---\n" + documents(IMAGES_IS + "spec: {protect: 1}\n"))
    assert [c for c, *_ in told(loaded(path, "prod"))] == ["M105", "M205"]


def test_a_base_that_cannot_be_read_makes_no_patch_wrong(tmp_path: Path) -> None:
    patch = documents(IMAGES_IS + "spec: {protect: true}\n")
    path = folder(tmp_path, base=documents(LAKE) + "---\nkind: [\n", prod=patch)
    assert [c for c, *_ in told(loaded(path, "prod"))] == ["M105"]


def test_the_published_schema_of_overlays() -> None:
    import json

    import jsonschema_rs
    import yaml

    root = Path(__file__).parents[2]
    schema = json.loads((root / "schemas" / "overlay.schema.json").read_text())
    valid = jsonschema_rs.validator_for(schema).is_valid
    example = yaml.safe_load_all((root / "manifests-example" / "overlays" / "prod" / "lake.yaml").read_text())
    for document in (*example, *yaml.safe_load_all(documents(IMAGES_IS + "spec: {properties: {a: null}}\n"))):
        assert valid(document)
        assert valid(document | {"overlay": "add"})
        assert not valid(document | {"overlay": "new"})
        assert not valid({k: v for k, v in document.items() if k != "metadata"})


def test_another_type_of_catalog_takes_other_keys(tmp_path: Path) -> None:
    patch = documents(
        "kind: Catalog\nmetadata: {name: lake}\nspec: {type: rest, uri: 'https://lance.example', path: null}\n"
    )
    found = loaded(folder(tmp_path, base=BASE, prod=patch.replace(", path: null", "")), "prod")
    assert told(found) == [("M203", "base.yaml", 4)]
    assert "patch.yaml:1 changes spec.type" in found.diagnostics[0].hint
    assert "`path: null`" in found.diagnostics[0].hint
    found = loaded(folder(tmp_path, prod=patch), "prod")
    assert found.diagnostics == []
    assert (found.desired.catalogs["lake"].type, dict(found.desired.catalogs["lake"].options)) == (
        "rest",
        {"uri": "https://lance.example"},
    )


# -- what holds for every base and patch ---------------------------------------------------------------------------

SCALARS = st.one_of(st.text(max_size=3), st.integers(), st.booleans())
TREES: Any = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
SPECS = st.dictionaries(st.sampled_from("abcd"), TREES, max_size=4)


def document(spec: object) -> Document:
    return Document({"apiVersion": "x", "kind": "Table", "spec": spec}, 1, 1, "", 0, 0, 0)


def merged(base: object, patch: object) -> Any:
    out = patched(document(base), Layer(Sink("p.yaml", []), document(patch)), "it").value
    assert isinstance(out, dict)
    return out["spec"]


@given(SPECS)
def test_an_empty_patch_changes_nothing_and_the_base_is_never_touched(base: Any) -> None:
    before = repr(base)
    assert merged(base, {}) == base
    assert merged(base, base) == base
    merged(base, {"a": {"b": {"c": "new"}}, "b": None})
    assert repr(base) == before


@given(SPECS, SPECS)
def test_a_patch_twice_is_a_patch_once_and_its_values_are_there(base: Any, patch: Any) -> None:
    once = merged(base, patch)
    assert merged(once, patch) == once

    def holds(part: Any, whole: Any) -> bool:
        if isinstance(part, dict):
            return isinstance(whole, dict) and all(k in whole and holds(v, whole[k]) for k, v in part.items())
        return bool(part == whole)

    assert holds(patch, once)
    assert once.keys() == {*base, *patch}


def test_the_order_of_files_and_documents_does_not_matter(tmp_path: Path) -> None:
    parts = [
        IMAGES_IS + "spec: {protect: true}\n",
        "kind: Catalog\nmetadata: {name: lake}\nspec: {path: ./prod}\n",
        "kind: Namespace\nmetadata: {catalog: lake, id: [vision]}\nspec: {properties: {a: b}}\n",
    ]
    path = folder(tmp_path, base=BASE)
    digests = set()
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        for number, part in enumerate(order):
            file = path / "overlays" / "prod" / f"{number}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(documents(parts[part]))
        found = load([str(path)], environment="prod")
        assert found.diagnostics == []
        digests.add(found.desired.digest)
    assert len(digests) == 1


@pytest.mark.parametrize(
    "value",
    [None, [], "x", {}, {"kind": 1}, {"kind": "Table"}, {"kind": "Table", "metadata": {"catalog": "a", "id": [1]}}],
)
def test_what_says_not_what_it_is_about_has_no_identity(value: Any) -> None:
    assert identity(value) is None
