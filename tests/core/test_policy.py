"""Rules of a policy, one by one, on manifests alone; waivers and their days."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from manifest.support import CATALOG, codes, load_text, namespace, places, table

from reconciler.catalog import registry
from reconciler.core.policy import judge_manifests
from reconciler.core.policy_waivers import as_of
from reconciler.manifest.load import load
from reconciler.manifest.policy_rules import known_rules
from reconciler.manifest.schema_files import schema
from reconciler.model.desired import CatalogSpec
from reconciler.model.errors import CatalogError, Code
from reconciler.model.finding import Finding, Waiver
from reconciler.model.plan import Plan, Summary
from reconciler.model.policy import RULES, TITLES

TODAY = "2026-06-15"
HEAD = "apiVersion: reconciler.lance/v1\nkind: Policy\nmetadata: {name: p}\nspec:\n"
NS = namespace("n", "properties: {team: a}\n")


def policy(*rules: str, more: str = "", name: str = "p") -> str:
    lines = "".join(f"    - {rule}\n" for rule in rules)
    return HEAD.replace("name: p", f"name: {name}") + (f"  {more}\n" if more else "") + "  rules:\n" + lines


def found(tmp_path: Path, *documents: str, environment: str | None = None, today: str = TODAY) -> tuple[Finding, ...]:
    loaded = load_text(tmp_path, *documents, capabilities_of=registry.capabilities_of)
    assert [d for d in loaded.diagnostics if d.severity == "error"] == []
    desired = loaded.desired
    rules = {n: c for n, spec in desired.catalogs.items() if (c := registry.capabilities_of(spec)) is not None}
    return judge_manifests(desired, rules, environment, today).findings


def test_without_a_policy_nothing_is_checked(tmp_path: Path) -> None:
    assert found(tmp_path, CATALOG, namespace("Bad Name")) == ()


BROKEN = {
    "a table's name": ('{rule: naming, table: "[a-z]+"}', table("n, T1"), "P001", 8),
    "a namespace's name": ('{rule: naming, namespace: "[a-z]+"}', namespace("N"), "P001", 8),
    "no property": ("{rule: required-properties, properties: {pii: .+}}", table("n, t"), "P002", 9),
    "a property with another value": (
        '{rule: required-properties, properties: {pii: "true|false"}}',
        table("n, t", "properties: {pii: maybe}\n"),
        "P002",
        10,
    ),
    "no description": ("{rule: required-properties, properties: {description: .+}}", table("n, t"), "P002", 9),
    "a column's name of two lines": (
        '{rule: column-limits, name: ".+"}',
        table("n, t", 'schema: [{name: "a\\nb", type: int8}]\n'),
        "P005",
        10,
    ),
    "a column without its tag, whose name hides it": (
        '{rule: tagged-columns, columns: .*email, require: {metadata: {pii: "true"}}}',
        table("n, t", 'schema: [{name: "work\\nemail", type: string}]\n'),
        "P007",
        10,
    ),
    "an owner by property": ("{rule: required-owner, property: owner}", table("n, t"), "P003", 9),
    "a folder elsewhere": ('{rule: location-prefix, prefixes: ["s3://acme/prod"]}', table("n, t"), "P004", 9),
    "too many columns": (
        "{rule: column-limits, maxColumns: 1}",
        table("n, t", "schema: [{name: a, type: int8}, {name: b, type: int8}]\n"),
        "P005",
        10,
    ),
    "nested too deep": (
        "{rule: column-limits, maxDepth: 2}",
        table("n, t", 'schema: [{name: a, type: "list<list<int8>>"}]\n'),
        "P005",
        10,
    ),
    "a column's name": (
        '{rule: column-limits, name: "[a-z]+"}',
        table("n, t", 'schema:\n  - {name: a, type: int8}\n  - {name: b, type: "struct<c: int8, D: int8>"}\n'),
        "P005",
        12,
    ),
    "a column's name in a map": (
        '{rule: column-limits, name: "[a-z]+"}',
        table("n, t", 'schema: [{name: a, type: "map<string, list<struct<B: int8>>>"}]\n'),
        "P005",
        10,
    ),
    "a column in the keys of a map without its tag": (
        '{rule: tagged-columns, columns: .*email, require: {metadata: {pii: "true"}}}',
        table("n, t", 'schema: [{name: a, type: "map<struct<work_email: string>, int8>"}]\n'),
        "P007",
        10,
    ),
    "a column without its tag": (
        '{rule: tagged-columns, columns: .*email, require: {metadata: {pii: "true"}}}',
        table("n, t", "schema: [{name: work_email, type: string}]\n"),
        "P007",
        10,
    ),
    "a tagged column without a comment": (
        '{rule: tagged-columns, tagged: {pii: "true"}, require: {comment: .+}}',
        table("n, t", 'schema: [{name: x, type: string, metadata: {pii: "true"}}]\n'),
        "P007",
        10,
    ),
    "a table without the property of its columns": (
        '{rule: tagged-columns, tagged: {pii: "true"}, require: {properties: {pii: "true"}}}',
        table("n, t", 'schema: [{name: x, type: string, metadata: {pii: "true"}}]\n'),
        "P007",
        9,
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_a_rule_is_told_at_its_line(tmp_path: Path, case: str) -> None:
    rule, document, code, line = BROKEN[case]
    (finding,) = found(tmp_path, CATALOG, document, policy(rule.replace("{rule", "{match: ['n.*', N], rule", 1)))
    assert (finding.code, finding.severity, finding.refuses) == (code, "error", True)
    assert finding.source is not None
    assert finding.source.line == line
    assert finding.message
    assert finding.hint


LINES = 'description: |\n  All customers.\n  One row for each.\nproperties: {team: "a\\nb"}\n'
KEPT = [
    ("{rule: required-properties, properties: {description: .+, team: a.b}}", table("n, t", LINES)),
    ('{rule: naming, table: "[a-z]+"}', table("n, t")),
    ('{rule: naming, namespace: "x"}', table("n, t")),
    ("{rule: required-properties, properties: {pii: .+}, kinds: [Namespace]}", table("n, t")),
    ("{rule: required-owner, property: team}", table("n, t", "properties: {team: a}\n")),
    ("{rule: column-limits, maxColumns: 1, maxDepth: 1}", table("n, t", "schema: [{name: a, type: int8}]\n")),
    ("{rule: column-limits, maxColumns: 1}", table("n, t")),
    ("{rule: tagged-columns, columns: e, require: {comment: .}}", table("n, t", "schema: [{name: es, type: int8}]\n")),
    ('{rule: naming, table: "[A-Z]+"}', table("n, t", "state: absent\n")),
    ('{rule: naming, table: "[A-Z]+", severity: off}', table("n, t")),
    ('{rule: naming, table: "[A-Z]+", match: [other.*]}', table("n, t")),
    ('{rule: naming, table: "[A-Z]+", catalogs: [lake2]}', table("n, t")),
    ('{rule: naming, table: "[A-Z]+", environments: [prod]}', table("n, t")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "document"), KEPT)
def test_what_breaks_no_rule(tmp_path: Path, rule: str, document: str) -> None:
    assert [f for f in found(tmp_path, CATALOG, document, policy(rule)) if f.key and f.key.kind == "Table"] == []


def test_an_environment_switches_a_rule_on(tmp_path: Path) -> None:
    rule = policy('{rule: naming, table: "[A-Z]+", environments: [prod]}')
    assert [f.code for f in found(tmp_path, CATALOG, NS, table("n, t"), rule, environment="prod")] == ["P001"]
    assert found(tmp_path, CATALOG, NS, table("n, t"), rule, environment="dev") == ()


def test_policies_add_up(tmp_path: Path) -> None:
    one = policy('{rule: naming, table: "[A-Z]+"}', name="one")
    two = policy('{rule: naming, table: "[A-Z]+", severity: warning}', "{rule: required-owner}", name="two")
    findings = found(tmp_path, CATALOG, NS, table("n, t"), one, two)
    assert [(f.code, f.severity) for f in findings] == [("P003", "error"), ("P001", "error"), ("P001", "warning")]


LOCATIONS = [
    ("s3://acme/prod/x", True),
    ("s3a://acme/prod/x/", True),
    ("s3://acme/production/x", False),
    ("s3://acme/prod/../dev/x", False),
    ("s3://acme/prod", True),
    ("/acme/prod/x", False),
    ("file:///acme/prod/x", False),
]


@pytest.mark.parametrize(("location", "inside"), LOCATIONS)
def test_locations(tmp_path: Path, location: str, inside: bool) -> None:
    ice = CATALOG.replace("{type: dir, path: ./lake}", "{type: iceberg, endpoint: 'http://x', root: s3://acme/prod}")
    rule = policy('{rule: location-prefix, prefixes: ["s3://acme/prod/"]}')
    findings = found(tmp_path, ice, table("w, n, t", f"location: {location}\n"), rule)
    assert [f.code for f in findings] == ([] if inside else ["P004"])


@pytest.mark.parametrize(
    ("path", "prefix", "inside"),
    [
        ("./lake", "{here}/lake", True),
        ("./lake", "{here}", True),
        ("./lake", "file://{here}/lake/", True),
        ("./lake/../lake", "{here}/lake", True),
        ("./lake", "{here}/lak", False),
        ("./lake", "{here}/lake/../other", False),
        ("./lake", "file://{here}/other", False),
        ("./lake", "s3://acme/prod", False),
        ("../evil", "{here}", False),
        ("lake/../../evil", "{here}", False),
        ("{here}/good/../evil", "{here}/good", False),
        ("file://{here}/good/../evil", "{here}/good", False),
        ("file://{here}/lake", "{here}/lake", True),
        ("s3://acme/prod/lake", "s3://acme/prod", True),
        ("s3://acme/prod/../dev", "s3://acme/prod", False),
    ],
)
def test_a_folder_relative_to_the_working_directory_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, prefix: str, inside: bool
) -> None:
    """By its absolute path; it is told as it is written, so that every machine makes the same plan."""
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path)
    lake = CATALOG.replace("./lake", path.format(here=here))
    rule = policy(f"{{rule: location-prefix, prefixes: ['{prefix.format(here=here)}']}}")
    findings = found(tmp_path, lake, NS, table("n, t"), table("n, u", "location: x/u\n"), rule)
    assert [f.code for f in findings] == ([] if inside else ["P004", "P004"])
    assert [here in f.message.replace(prefix.format(here=here), "") for f in findings if "{here}" not in path] == (
        [] if inside or "{here}" in path else [False, False]
    )


@pytest.mark.parametrize("prefix", ["real", "link"])
@pytest.mark.parametrize("start", ["real", "link"])
def test_a_folder_behind_a_link_is_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, prefix: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / start)
    rule = policy(f"{{rule: location-prefix, prefixes: ['{tmp_path}/{prefix}']}}")
    assert found(tmp_path, CATALOG, NS, table("n, t"), rule) == ()


@pytest.mark.parametrize(
    ("location", "inside"),
    [("./lake/u", True), ("u", True), ("lake/u", False)],
)
def test_a_location_in_a_folder_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str, inside: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    rule = policy(f"{{rule: location-prefix, prefixes: ['{tmp_path}/lake/u']}}")
    findings = found(tmp_path, CATALOG, NS, table("n, u", f"location: {location}\n"), rule)
    assert [f.code for f in findings] == ([] if inside else ["P004"])


def test_a_name_with_a_hash_is_no_way_around(tmp_path: Path) -> None:
    """Storage takes `#` for a part of the path, so what stands behind it counts."""
    glue = CATALOG.replace("{type: dir, path: ./lake}", "{type: iceberg, endpoint: 'http://x', root: /acme}")
    rule = policy('{rule: location-prefix, prefixes: ["/acme/good"]}')
    findings = found(tmp_path, glue, table("w, n, t", "location: 'file:///acme/good#/../evil'\n"), rule)
    assert [f.code for f in findings] == ["P004"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{type: rest, uri: 'http://x'}", "the service chooses its place"),
        ("{type: dir, path: '${env:LAKE}/x'}", "'${env:LAKE}/x' is not resolved here"),
        ("{type: iceberg, endpoint: 'http://x', root: '${env:LAKE}'}", "'${env:LAKE}' is not resolved here"),
    ],
)
def test_a_location_that_is_not_known_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, why: str
) -> None:
    """As a warning: a rule that keeps silent looks like one that is kept. A waiver of it may be of use all the same."""
    monkeypatch.setenv("LAKE", "/elsewhere")
    lake = CATALOG.replace("{type: dir, path: ./lake}", spec)
    rule = policy('{rule: location-prefix, prefixes: ["/a"]}')
    names = ("w, n, t", "w, n, u") if "iceberg" in spec else ("n, t", "n, u")
    tables = [*(table(name) for name in names), waived("2999-12-31", "P004").replace("n, t", names[0][:-1] + "v")]
    loaded = load_text(tmp_path, lake, NS if "iceberg" not in spec else "", *tables, rule)
    assert "M545" not in codes(loaded)
    (finding,) = found(tmp_path, lake, *tables, rule)
    assert (finding.code, finding.severity, finding.key, finding.refuses) == ("P004", "warning", None, False)
    assert finding.message == f"tables of the catalog lake: whether the location is under /a cannot be told yet: {why}"
    assert finding.source is not None


def waived(until: str, code: str = "P001") -> str:
    return table("n, t", f'waivers: [{{code: {code}, reason: because, until: "{until}"}}]\n')


NAMES = '{rule: naming, table: "[A-Z]+"}'


@pytest.mark.parametrize(
    ("until", "more", "holds", "says"),
    [
        ("2026-06-15", "", True, ""),
        ("2026-06-14", "", False, "expired on 2026-06-14"),
        ("2026-09-13", "maxWaiverDays: 90", True, ""),
        ("2026-09-14", "maxWaiverDays: 90", False, "allows 90 days ahead"),
        ("2027-06-15", "maxWaiverDays: 365", True, ""),
        ("2028-06-15", "maxWaiverDays: 731", True, ""),
        ("2028-06-15", "maxWaiverDays: 730", False, "allows 730 days ahead"),
    ],
)
def test_a_waiver_holds_up_to_its_day(tmp_path: Path, until: str, more: str, holds: bool, says: str) -> None:
    (finding,) = found(tmp_path, CATALOG, NS, waived(until), policy(NAMES, more=more))
    assert finding.waiver == (Waiver("because", until) if holds else None)
    assert finding.refuses is not holds
    assert says in finding.message


@pytest.mark.parametrize("order", [(90, 30), (30, 90)])
def test_of_two_policies_the_smaller_limit_of_waivers_counts(tmp_path: Path, order: tuple[int, int]) -> None:
    both = [policy(NAMES, more=f"maxWaiverDays: {days}", name=f"p{n}") for n, days in enumerate(order)]
    for until, holds in (("2026-07-15", True), ("2026-07-16", False)):
        findings = found(tmp_path, CATALOG, NS, waived(until), *both)
        assert [f.waiver is not None for f in findings] == [holds] * len(findings)
        assert findings


def test_without_a_day_no_waiver_holds(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, CATALOG, NS, waived("2999-01-01"), policy(NAMES), today="")
    assert finding.refuses


def test_a_waiver_is_for_its_code_only(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, CATALOG, NS, waived("2999-01-01", "P002"), policy(NAMES))
    assert finding.refuses


def test_a_waiver_expires_between_plan_and_apply() -> None:
    findings = (
        Finding("P001", "error", None, "a", waiver=Waiver("r", "2026-06-15")),
        Finding("P002", "warning", None, "b", waiver=Waiver("r", "2026-06-14")),
        Finding("P003", "warning", None, "c"),
    )
    plan = Plan("id", "1", "", {}, (), (), (), Summary(), findings)
    assert as_of(plan, "2026-06-14") is plan
    assert as_of(plan, "2026-06-15").refused is None
    later = as_of(plan, "2026-06-16")
    assert later.refused == "policy: P001 a; its waiver expired on 2026-06-15"
    assert later.findings[2] is findings[2]
    assert replace(later, findings=findings) == plan


WRONG = {
    "M202": [HEAD.replace("Policy", "Policies")],
    "M207": [policy("{rule: namin, table: a}")],
    "M203": [policy("{rule: naming, tables: a}")],
    "M204": [policy("{rule: naming}")],
    "M206": [NS, table("n, t", "waivers: [{code: P001, reason: x, until: 2027-01-31}]\n")],
    "M210": [NS, waived("2999-01-01").replace("because", '""')],
    "M540": [policy(NAMES), policy(NAMES)],
    "M541": [policy('{rule: naming, table: "(a+"}')],
    "M542": [NS, waived("2027-02-29")],
    "M543": [NS, table("n, t", 'waivers: [&w {code: P001, reason: x, until: "2027-01-31"}, *w]\n')],
    "M544": [policy("{rule: naming, table: t, catalogs: [lakes]}")],
    "M545": [NS, waived("2999-01-01", "P004"), policy(NAMES)],
}


@pytest.mark.parametrize("code", WRONG)
def test_what_is_wrong_with_a_policy_or_a_waiver(tmp_path: Path, code: str) -> None:
    assert code in codes(load_text(tmp_path, CATALOG, *WRONG[code]))


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ("match: ['m.**']", ["m.**"]),
        ("match: ['n.*', 'm.*']", ["m.*"]),
        ("match: ['n.*'], catalogs: [pond]", ["n.*"]),
        ("match: ['n.**', n, '*.t']", []),
        ("match: ['m.**'], severity: off", []),
        ("match: ['m.**'], catalogs: [empty]", []),
        ("environments: [prd]", []),  # There are no overlays.
        ("match: ['m.**'], environments: [prod]", []),  # Whose objects are not all here.
    ],
)
def test_a_glob_that_matches_nothing_is_told(tmp_path: Path, reach: str, told: list[str]) -> None:
    """A misspelt name would switch a rule off without a word."""
    others = [CATALOG.replace("name: lake", f"name: {n}").replace("./lake", n) for n in ("pond", "empty")]
    other = namespace("p").replace("catalog: lake", "catalog: pond")
    loaded = load_text(
        tmp_path, CATALOG, *others, other, NS, table("n, t"), policy(f"{{rule: naming, table: t, {reach}}}")
    )
    found_ = [(d.code, d.severity, d.message.partition(":")[0]) for d in loaded.diagnostics]
    assert found_ == [("M546", "warning", f"no declared object matches {glob}") for glob in told]
    guard = policy("{rule: no-destructive-change, match: ['m.*']}")
    guarded = load_text(tmp_path, CATALOG, NS, table("n, t"), guard)
    assert guarded.diagnostics == [], "it is for what no manifest declares any more, too"
    alone = load_text(tmp_path, CATALOG, policy("{rule: naming, table: t, match: ['m.*']}"))
    assert alone.diagnostics == [], "policies alone"


def test_an_environment_without_an_overlay_is_told(tmp_path: Path) -> None:
    overlay = tmp_path / "overlays" / "prod"
    overlay.mkdir(parents=True)
    rule = "{rule: naming, table: t, environments: [prd, prod]}"
    assert load_text(tmp_path, CATALOG, NS, table("n, t"), policy(rule)).diagnostics == [], "a file, no overlays"
    (told,) = load([str(tmp_path)]).diagnostics
    assert (told.code, told.severity, told.hint) == ("M547", "warning", "did you mean prod?")
    assert "overlays/prd" in told.message
    assert told.source.column is not None


@pytest.mark.parametrize("reason", ["'  '", '"\\t\\n"', '"\\u00a0"'])
def test_a_waiver_says_why(tmp_path: Path, reason: str) -> None:
    (told,) = load_text(tmp_path, CATALOG, NS, waived("2999-01-01").replace("because", reason)).diagnostics
    assert (told.code, told.severity) == ("M207", "error")
    assert "a reason is needed, not only white space" in f"{told.message} {told.hint}"


def test_hints_name_what_was_meant(tmp_path: Path) -> None:
    hints = {d.code: d.hint for d in load_text(tmp_path, CATALOG, *WRONG["M207"]).diagnostics}
    assert hints["M207"] == "did you mean naming?"
    unknown = NS, table("n, t", 'waivers: [{code: P01, reason: x, until: "2027-01-31"}]\n')
    assert "P001" in load_text(tmp_path, CATALOG, *unknown).diagnostics[0].hint
    plain = load_text(tmp_path, CATALOG, *WRONG["M206"]).diagnostics[0]
    assert plain.hint == 'write "2027-01-31"'


def test_a_bad_pattern_is_told_at_its_character(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, policy('{rule: naming, table: "ab(c"}'))
    assert places(loaded, "M541") == [(11, 32)]


def test_a_waiver_for_another_environment_is_of_use(tmp_path: Path) -> None:
    rule = policy('{rule: naming, table: "[A-Z]+", environments: [prod]}')
    assert codes(load_text(tmp_path, CATALOG, NS, waived("2999-01-01"), rule)) == []
    assert codes(load_text(tmp_path, CATALOG, NS, waived("2999-01-01", "P006"), rule)) == []


def test_one_list_of_rules() -> None:
    published = schema("manifest")["$defs"]
    assert published["waiver"]["properties"]["code"]["enum"] == [*TITLES] == [*RULES.values()]
    assert published["rule"]["properties"]["rule"]["enum"] == [*RULES]


def test_a_plugin_that_cannot_say_what_it_allows_is_not_asked_twice(tmp_path: Path) -> None:
    def broken(spec: CatalogSpec) -> None:
        raise CatalogError(Code.UNSUPPORTED, "no")

    loaded = load_text(tmp_path, CATALOG, policy(NAMES), capabilities_of=broken)
    assert codes(loaded) == []
    assert known_rules(loaded.desired, broken) == {}


def test_the_first_findings_are_told_at_their_keys_the_rest_at_their_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.core.policy.MOST_PLACES", 1)
    findings = found(tmp_path, CATALOG, NS, table("n, t"), table("n, u"), policy(NAMES))
    lines = [f.source.line for f in findings if f.source is not None]
    assert [(tmp_path / "m.yaml").read_text().splitlines()[n - 1].split()[0] for n in lines] == [
        "metadata:",
        "apiVersion:",
    ]


def test_a_pattern_is_shown_as_it_is_written(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, policy("{rule: naming, table: '(.|\\n)+'}"))
    (told,) = [d for d in loaded.diagnostics if d.code == "M541"]
    assert told.message.startswith("the pattern (.|\\n)+ cannot be used: \\n has no meaning here")
