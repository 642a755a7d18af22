"""Every word that an output shows as a state, a verdict, an ending or a sign can be asked for.

The list is made from the code: the types of the model, the tables of the renderers, the page's filters, golden plans.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import reconciler.model
import reconciler.render
from reconciler.explain.catalogue import explanations, find
from reconciler.model import change, state
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.lease_event import STATES
from reconciler.model.maintained import PARTS
from reconciler.model.plan import CatalogSummary, Plan, Summary
from reconciler.model.run import CHECK_FAILED, DONE, OUTCOMES
from reconciler.render import markdown, page_entries, run_page

HERE = Path(__file__).parent
PAGE = Path(reconciler.render.__file__).parent / "page" / "start.js"
NO_WORDS_OF_A_RUN = ("arrow", "data", "explanation")
"""Modules whose choices are spelt in manifests, or are about explanations themselves."""
TABLES = re.compile(r"_?(SIGNS|MARKS|WORDS|COLOURS)")
"""How renderers call a table of words or signs that they print."""


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"{package.__name__}.{found.name}")


def chosen_types() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every closed choice of words in the model: aliases, and fields that are annotated with one."""
    for module in modules(reconciler.model):
        for name, value in vars(module).items():
            if get_origin(value) is Literal:
                yield f"{module.__name__}.{name}", get_args(value)
            if dataclasses.is_dataclass(value) and isinstance(value, type) and value.__module__ == module.__name__:
                for field, hint in get_type_hints(value).items():
                    if get_origin(hint) is Literal:
                        yield f"{module.__name__}.{name}.{field}", get_args(hint)


def of_types() -> set[str]:
    """`Kind` (Namespace, Table) is no state."""
    shown = (
        words
        for name, words in chosen_types()
        if name.split(".")[2] not in NO_WORDS_OF_A_RUN and name.rpartition(".")[2].lower() != "kind"
    )
    return {word for words in shown for word in words if isinstance(word, str)}


def of_tables() -> set[str]:
    """Keys are the words of JSON, values those for people; a sign may be either. Colours are not words."""
    found: set[str] = set()
    for module in modules(reconciler.render):
        for name, table in vars(module).items():
            if TABLES.fullmatch(name) and isinstance(table, dict):
                words = table if "COLOURS" in name else [*table, *table.values()]
                found |= {w.strip() for w in words if isinstance(w, str)}
    return found - {""}


def of_the_page() -> set[str]:
    """Its quick filters, and the kinds, signs and policy words of a plan that has one of each."""
    quick = re.search(r"const QUICK = (\[.*?\]\]);", PAGE.read_text("utf-8"), re.S)
    assert quick is not None
    return {word for entry in re.findall(r"\[\"([^\"]+)\", \"[^\"]+\", \"([^\"]+)\"", quick[1]) for word in entry}


def told(plan: Plan) -> set[str]:
    found: set[str] = set()
    for entry in page_entries.entries(plan):
        found |= {str(entry["kind"]), str(entry["symbol"])}
        policy = entry.get("policy") or ()
        assert isinstance(policy, list | tuple)
        found |= {str(p).split(" ")[0] for p in policy}
    return found


def one_of_each() -> Plan:
    key = ObjectKey("lake", ("n",), "Namespace")
    findings = (
        Finding("P001", "error", key, "m"),
        Finding("P001", "warning", key, "m"),
        Finding("P001", "error", key, "m", waiver=Waiver("r", "2027-01-01")),
    )
    lake = CatalogSummary("dir", False, 1, 0, {}, (ReadError(Code.INTERNAL, "a problem"),), (("n", "t"),))
    return Plan("id", "1", "sha", {"lake": lake}, (), (key,), (key,), Summary(), findings, (key,))


def of_golden_plans() -> set[str]:
    """Titles in the text: `  Orphaned: …`."""
    texts = [p.read_text("utf-8") for p in (HERE / "golden" / "cases").glob("*/plan.txt")]
    return {m for text in texts for m in re.findall(r"^  (Owned by|[A-Za-z]+)(?: [\w-]+)?:", text, re.M)}


def words() -> dict[str, set[str]]:
    classes = [v for v in vars(change).values() if isinstance(v, type)]
    return {
        "the types of the model": of_types(),
        "the tables of the renderers": of_tables(),
        "the page's filters": of_the_page(),
        "the page's entries": told(one_of_each()),
        "the signs of a run": {sign for sign, _ in run_page._SHOWN.values()},
        "the lists in markdown": {noun for noun, _ in markdown._LISTS},
        "golden plans": of_golden_plans(),
        "actions": {c.action for c in classes if isinstance(getattr(c, "action", None), str)},
        "lines of a journal about leases": {*STATES},
        "endings of a run": {*OUTCOMES, DONE, CHECK_FAILED},
        "what is counted": {f.name for f in dataclasses.fields(Summary)},
        "parts of maintain": {*PARTS},
        "our marks": {v for n, v in vars(state).items() if n.endswith("_KEY") and v.startswith("reconciler.")},
    }


@pytest.mark.parametrize("where", words())
def test_every_word_that_is_shown_can_be_asked_for(where: str) -> None:
    shown = words()[where]
    assert shown, f"nothing found in {where}: the code has moved"
    assert sorted(w for w in shown if not find(w)) == []


def test_the_lists_are_found_in_the_code() -> None:
    """So that a table that is renamed does not silently leave the test above with less."""
    found = words()
    assert {"blocked", "destructive", "detached", "held", "running", "warning"} <= found["the types of the model"]
    assert {"+", "?", "NO END", "to do", "ok", "never ended"} <= found["the tables of the renderers"]
    assert {"orphaned", "unowned", "stale", "left out", "waived", "refusing", "i"} <= found["the page's entries"]
    assert {"Orphaned", "Unowned", "incomplete"} <= found["golden plans"]


def test_no_entry_has_a_word_that_nobody_shows() -> None:
    """Of actions, verdicts, risks, endings and signs: what is gone from the code is gone from here."""
    shown = {w for of_one in words().values() for w in of_one}
    qualified = [e for e in explanations() if e.kind in ("action", "word") and " " in e.code and e.names]
    closed = [
        e.code for e in qualified if e.code.split()[0] in ("action", "verdict", "risk", "lease", "sign", "process")
    ]
    assert len(closed) > 30
    assert [c for c in closed if c.partition(" ")[2] not in shown] == []
