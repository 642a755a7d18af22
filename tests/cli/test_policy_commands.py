"""A policy in use: what validate, plan, apply and drift do with findings."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, check_schema, namespace, reconciler, table, write

from reconciler import app

RULE = "{rule: naming, table: '[a-z]+'}"


def policy(*rules: str) -> str:
    lines = "".join(f"    - {rule}\n" for rule in rules)
    return f"---\napiVersion: reconciler.lance/v1\nkind: Policy\nmetadata: {{name: p}}\nspec:\n  rules:\n{lines}"


def broken(folder: Path, *rules: str, spec: str = "") -> None:
    write(folder, catalog(), namespace("n"), table("n", "T1", spec=spec), policy(*(rules or (RULE,))))


WAIVED = 'waivers: [{code: P001, reason: "next release", until: "2999-12-31"}]'


def test_an_error_refuses_everything(tmp_path: Path) -> None:
    broken(tmp_path)
    checked = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    assert checked.code == 3
    assert [(d["code"], d["line"]) for d in checked.json["diagnostics"]] == [("P001", 15)]
    planned = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json")
    assert planned.code == 3
    assert "error[P001] table lake:n.T1: the name 'T1'" in planned.out
    assert "Refused: policy: P001" in planned.out
    document = reconciler(tmp_path, "plan", "m.yaml", "--format", "markdown")
    assert document.err.startswith("error: refused by policy: P001 "), "who has no document has the reason"
    saved = json.loads((tmp_path / "p.json").read_text())
    check_schema("plan", saved)
    assert saved["findings"][0]["source"] == {"file": "m.yaml", "line": 15}
    for way in (["m.yaml"], ["--plan", "p.json"]):
        applied = reconciler(tmp_path, "apply", *way, "--yes", "--format", "json")
        check_schema("report", applied.json)
        assert (applied.code, applied.json["outcome"]) == (3, "refused")
        assert {s["status"] for s in applied.json["steps"]} == {"not_run"}
        assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("kind", ["refused", "warning", "waived"])
def test_the_report_has_the_findings_in_every_format(tmp_path: Path, kind: str) -> None:
    """Who has only the report has not seen the plan."""
    rule = RULE if kind != "warning" else "{rule: naming, table: '[a-z]+', severity: warning}"
    broken(tmp_path, rule, spec=WAIVED if kind == "waived" else "")
    applied = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json", "--report", "r.json")
    check_schema("report", applied.json)
    (found,) = applied.json["findings"]
    assert (found["code"], found["source"]) == ("P001", {"file": "m.yaml", "line": 15})
    assert (found["waiver"] is not None) is (kind == "waived")
    for how in ("text", "json", "markdown", "html", "sarif", "junit"):
        shown = reconciler(tmp_path, "show", "r.json", "--format", how)
        assert (shown.code, "P001" in shown.out, "T1" in shown.out) == (0, True, True), how
    text = reconciler(tmp_path, "show", "r.json").out
    word = {"refused": "error[P001]", "warning": "warning[P001]", "waived": "waived[P001]"}[kind]
    assert word in text
    sarif = reconciler(tmp_path, "show", "r.json", "--format", "sarif").json["runs"][0]["results"]
    assert [(r["ruleId"], "suppressions" in r) for r in sarif if r["ruleId"] == "P001"] == [("P001", kind == "waived")]


def test_a_prefix_that_is_not_resolved_is_told_and_refuses_nothing(tmp_path: Path) -> None:
    """Pull requests of strangers are checked so."""
    rule = "{rule: location-prefix, prefixes: ['/${env:PFX}/lake']}"
    write(tmp_path, catalog(), namespace("n"), table("n", "t"), policy(rule))
    run = reconciler(tmp_path, "validate", "--no-resolve", "m.yaml", "--format", "json")
    assert (run.code, [(d["code"], d["severity"]) for d in run.json["diagnostics"]]) == (0, [("P004", "warning")])


def test_no_changes_do_not_help(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("n"), table("n", "T1"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    broken(tmp_path)
    planned = reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode")
    assert (planned.code, "Refused: policy: P001" in planned.out) == (3, True)
    applied = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert (applied.code, applied.json["outcome"]) == (3, "refused")
    drift = reconciler(tmp_path, "drift", "m.yaml")
    assert (drift.code, "error[P001]" in drift.out) == (0, True), (
        "live and manifests are equal: that is what it is asked"
    )


@pytest.mark.parametrize("rule", ["{rule: naming, table: '[a-z]+', severity: warning}", RULE])
def test_warnings_and_waived_findings_are_told(tmp_path: Path, rule: str) -> None:
    waived = rule == RULE
    broken(tmp_path, rule, spec=WAIVED if waived else "")
    word = "waived[P001]" if waived else "warning[P001]"
    assert reconciler(tmp_path, "validate", "m.yaml").code == 0
    planned = reconciler(tmp_path, "plan", "m.yaml")
    assert (planned.code, word in planned.out) == (0, True)
    applied = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert (applied.code, word in applied.out) == (0, True)


@pytest.mark.parametrize("hours", [-5, 0, 5])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "UTC", "Pacific/Niue"])
def test_a_clock_that_is_hours_off_moves_a_waiver_by_a_day_at_most(
    monkeypatch: pytest.MonkeyPatch, zone: str, hours: int
) -> None:
    """And the zone of the machine, up to a day away, by none."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    right = datetime.datetime(2026, 11, 19, 21, 0, tzinfo=datetime.UTC)

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
            return cls.fromtimestamp((right + datetime.timedelta(hours=hours)).timestamp(), tz)

    monkeypatch.setattr(app, "datetime", SimpleNamespace(datetime=Clock, UTC=datetime.UTC))
    told = app.today()
    monkeypatch.undo()
    time.tzset()
    assert told == ("2026-11-20" if hours > 3 else "2026-11-19")


def test_a_waiver_that_expired_since_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The day is the one thing that a test has to stand in for."""
    broken(tmp_path, spec=WAIVED.replace("2999-12-31", "2030-01-31"))
    monkeypatch.setattr(app, "today", lambda: "2030-01-31")
    planned = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json")
    assert (planned.code, json.loads((tmp_path / "p.json").read_text())["judged_on"]) == (0, "2030-01-31")
    monkeypatch.setattr(app, "today", lambda: "2030-02-01")
    late = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert (late.code, late.json["outcome"]) == (3, "refused")
    assert "its waiver expired on 2030-01-31" in late.json["message"]
    assert not (tmp_path / "lake").exists()
    monkeypatch.setattr(app, "today", lambda: "2030-01-31")
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes").code == 0


def test_manifests_with_errors_are_not_judged(tmp_path: Path) -> None:
    broken(tmp_path, spec="nonsense: 1")
    checked = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    assert checked.code == 1
    assert [d["code"] for d in checked.json["diagnostics"]] == ["M203"]


def test_hostile_texts_do_not_steer_the_terminal(tmp_path: Path) -> None:
    spec = 'waivers: [{code: P001, reason: "a\\e[31mb", until: "2999-12-31"}]'
    broken(tmp_path, RULE, '{rule: required-properties, kinds: [Table], properties: {"k\\e[2J": x}}', spec=spec)
    shown = reconciler(tmp_path, "plan", "m.yaml").out
    assert "\x1b" not in shown
    assert "a\\x1b[31mb" in shown


def test_a_waived_finding_is_suppressed_in_sarif(tmp_path: Path) -> None:
    """By validate as by plan, so that code scanning keeps it with its reason; the same finding before and after."""

    def result() -> dict[str, Any]:
        (found,) = reconciler(tmp_path, "validate", "m.yaml", "--format", "sarif").json["runs"][0]["results"]
        assert isinstance(found, dict)
        return found

    broken(tmp_path)
    before = result()
    broken(tmp_path, spec=WAIVED)
    after = result()
    (suppressed,) = after.pop("suppressions")
    assert (suppressed["status"], suppressed["justification"]) == ("accepted", "next release (until 2999-12-31)")
    assert after == before
    shown = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    assert (shown.code, shown.json["diagnostics"]) == (0, [])


def located(folder: Path, path: str, prefix: str) -> None:
    rule = f"{{rule: location-prefix, prefixes: ['{prefix}']}}"
    write(folder, catalog().replace("./lake", path), namespace("n"), table("n", "t"), policy(rule))


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("path", ["./lake", "${env:LAKE}", "${env:HERE}/lake"])
def test_a_plan_judges_the_place_that_a_relative_path_or_a_variable_leads_to(
    tmp_path: Path, path: str, live: bool
) -> None:
    env = {"LAKE": "./lake", "HERE": str(tmp_path)}
    if live:
        located(tmp_path, path, str(tmp_path))
        assert reconciler(tmp_path, "apply", "m.yaml", "--yes", env=env).code == 0
    for prefix, code in ((f"{tmp_path}/lak", 3), (f"file://{tmp_path}/other", 3), (f"{tmp_path}/lake", 0)):
        located(tmp_path, path, prefix)
        planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json", env=env)
        assert planned.code == code, planned.out
        told = [f["message"] for f in planned.json.get("findings", ())]
        assert [m.endswith(f"is not under {prefix}") for m in told] == ([True] if code else [])
        if path == "./lake":
            assert str(tmp_path) not in planned.out.replace(prefix, ""), "the same plan on every machine"


PROPERTY = "{rule: required-properties, kinds: [Table, Namespace], properties: {team: a}}"
OWNER = "{rule: required-owner, kinds: [Table, Namespace], property: team, pattern: a}"


@pytest.mark.parametrize("rule", [PROPERTY, OWNER])
@pytest.mark.parametrize("ignored", ["properties", "properties.team"])
def test_what_is_left_to_others_satisfies_no_rule(tmp_path: Path, rule: str, ignored: str) -> None:
    """It is not written: only what is live counts, and offline nobody knows."""
    spec = f"properties: {{team: a}}\n  ignoreDifferences: [{ignored}]"
    left = [namespace("n", spec="{" + spec.replace("\n ", ",") + "}"), table("n", "t", spec=spec)]
    write(tmp_path, catalog(), *left, policy(rule))
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert planned.code == 3, planned
    assert [(f["object"]["kind"], f["severity"]) for f in planned.json["findings"]] == [
        ("Namespace", "error"), ("Table", "error"),
    ]  # fmt: skip
    assert all("leaves it to others" in f["message"] for f in planned.json["findings"])
    offline = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    assert {d["severity"] for d in offline.json["diagnostics"]} == {"warning"}
    plain = "properties: {team: a}"
    write(tmp_path, catalog(), namespace("n", spec=f"{{{plain}}}"), table("n", "t", spec=plain))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), *left, policy(rule))
    assert "findings" not in reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json


def test_a_live_value_that_others_set_is_judged(tmp_path: Path) -> None:
    """A declared value that is not written hides no live one."""
    spec = "properties: {team: b}"
    write(tmp_path, catalog(), namespace("n"), table("n", "t", spec=spec))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    spec = "properties: {team: a}\n  ignoreDifferences: [properties.team]"
    write(tmp_path, catalog(), namespace("n"), table("n", "t", spec=spec), policy(PROPERTY.replace(", Namespace", "")))
    planned = reconciler(tmp_path, "plan", "m.yaml")
    assert planned.code == 3
    assert "is 'b'" in planned.out


def test_a_column_without_the_comment_that_is_left_to_others(tmp_path: Path) -> None:
    rule = "{rule: tagged-columns, columns: id, require: {comment: .+}}"
    schema = "[{name: id, type: int64, comment: the number}]"
    for ignored, code in (("schema.id.comment", 3), ("schema.id", 3), ("schema.other", 2)):
        spec = f"ignoreDifferences: [{ignored}]"
        write(tmp_path, catalog(), namespace("n"), table("n", "t", schema=schema, spec=spec), policy(rule))
        assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == code, ignored


NAMES = "{rule: column-limits, name: '[a-z]+'}"
TAGGED = "{rule: tagged-columns, columns: BAD, require: {metadata: {pii: 'true'}}}"


def live_columns(folder: Path, **columns: Any) -> None:
    """In a dataset that somebody else made."""
    lance.write_dataset(pa.table({"id": [1], **columns}), folder / "lake" / "t.lance")


@pytest.mark.parametrize("rule", [NAMES, TAGGED, "{rule: column-limits, maxColumns: 1}"])
@pytest.mark.parametrize("how", ["at_least", "without", "blocked"])
def test_a_live_column_that_stays_is_judged(tmp_path: Path, rule: str, how: str) -> None:
    """Declared or not: when the table is taken over, and ever after. Offline nobody knows of it."""
    live_columns(tmp_path, BAD=["x"])
    declared = table("t", spec="schemaMode: at_least" if how == "at_least" else "protect: false")
    if how == "without":
        declared = declared.replace("  schema: [{name: id, type: int64}]\n", "")
    write(tmp_path, catalog(), declared, policy(rule))
    assert reconciler(tmp_path, "validate", "m.yaml").code == 0
    for adopt in (("--adopt",), ()):
        planned = reconciler(tmp_path, "plan", "m.yaml", *adopt, "--format", "json")
        assert planned.code == 3, planned
        assert [f["object"]["id"] for f in planned.json["findings"]] == [["t"]]
        assert planned.json["findings"][0]["source"]["line"] > 0
        assert reconciler(tmp_path, "apply", "m.yaml", "--yes", *adopt).code == 3
        write(tmp_path, catalog(), declared)
        reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt")
        write(tmp_path, catalog(), declared, policy(rule))


@pytest.mark.parametrize("declared", ["", ", {name: x, type: string}"])
def test_metadata_of_others_on_a_column_is_judged(tmp_path: Path, declared: str) -> None:
    """What another tool has tagged stays tagged, whether the column is declared or not."""
    fields = [pa.field("id", pa.int64()), pa.field("x", pa.string(), metadata={"pii": "true"})]
    rows = pa.table({"id": [1], "x": ["x"]}, pa.schema(fields))
    lance.write_dataset(rows, tmp_path / "lake" / "t.lance")
    tagged = "{rule: tagged-columns, tagged: {pii: 'true'}, require: {properties: {pii: 'true'}}}"
    columns = table("t", schema=f"[{{name: id, type: int64}}{declared}]", spec="schemaMode: at_least")
    write(tmp_path, catalog(), columns, policy(tagged))
    planned = reconciler(tmp_path, "plan", "m.yaml", "--adopt", "--format", "json")
    assert (planned.code, [f["code"] for f in planned.json["findings"]]) == (3, ["P007"])


def test_columns_of_a_table_that_stays_somebody_elses_are_not_judged(tmp_path: Path) -> None:
    live_columns(tmp_path, BAD=["x"])
    write(tmp_path, catalog(), table("t", spec="schemaMode: at_least"), policy(NAMES))
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert (planned.code, planned.json.get("findings", [])) == (0, [])


def test_a_nested_column_that_stays_is_judged(tmp_path: Path) -> None:
    live_columns(tmp_path, s=[{"a": 1, "BAD": 2}])
    schema = "[{name: id, type: int64}, {name: s, type: 'struct<a: int64>'}]"
    write(tmp_path, catalog(), table("t", schema=schema, spec="schemaMode: at_least"), policy(NAMES))
    planned = reconciler(tmp_path, "plan", "m.yaml", "--adopt", "--format", "json")
    assert planned.code == 3, planned
    assert "'s.BAD'" in planned.json["findings"][0]["message"]


def test_a_live_column_that_the_plan_takes_away_is_not_judged(tmp_path: Path) -> None:
    for name, new in (("BAD", ""), ("OLD", ", {name: new, type: string, renamedFrom: OLD}")):
        folder = tmp_path / name
        folder.mkdir()
        live_columns(folder, **{name: ["x"]})
        schema = f"[{{name: id, type: int64}}{new}]"
        write(folder, catalog(), table("t", schema=schema, spec="allow: [drop_column]"), policy(NAMES))
        assert reconciler(folder, "apply", "m.yaml", "--yes", "--adopt").code == 0
        assert reconciler(folder, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    "rule",
    ["{rule: column-limits, maxColumns: 1}", "{rule: column-limits, name: '[a-z]+'}",
     "{rule: tagged-columns, columns: Email, require: {metadata: {pii: 'true'}}}"],
)  # fmt: skip
def test_a_copied_table_is_judged_by_the_columns_it_gets(tmp_path: Path, rule: str) -> None:
    old = catalog(path="./old").replace("name: lake", "name: old")
    schema = "[{name: id, type: int64}, {name: Email, type: string}]"
    write(tmp_path, old, (namespace("n") + table("n", "t", schema=schema)).replace("catalog: lake", "catalog: old"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    copy = (
        "---\napiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {catalog: lake, id: [n, t]}\n"
        "spec: {migration: {from: {catalog: old, id: [n, t]}}}\n"
    )
    lake = [namespace("n"), copy, policy(rule)]
    write(tmp_path, old, "---\n" + catalog(), *lake)
    planned = reconciler(tmp_path, "plan", "m.yaml", "--catalog", "lake", "--format", "json")
    assert planned.code == 3, planned
    assert [f["object"]["id"] for f in planned.json["findings"]] == [["n", "t"]]
