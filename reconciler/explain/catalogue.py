"""The explanations, from the data files of this package. Loaded when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from reconciler.explain.types import types_text
from reconciler.manifest.codes import CODES
from reconciler.model.errors import Code
from reconciler.model.explanation import Example, Explanation, Kind, Repeated, Setting
from reconciler.model.policy import TITLES

FILES: dict[str, Kind] = {
    "m1": "diagnostic", "m2": "diagnostic", "m3": "diagnostic", "m4": "diagnostic", "m5": "diagnostic",
    "plan": "diagnostic", "policy": "policy", "errors": "error", "blocked": "blocked_by", "exits": "exit code",
    "reports": "outcome", "actions": "action", "words": "word",
}  # fmt: skip
QUALIFIERS = frozenset({
    "exit", "outcome", "status", "error", "action", "verdict", "risk", "plane", "state", "summary", "sign", "lease",
    "process", "maintain",
})  # fmt: skip
"""First words of names that are also known without them."""
TYPES = "types"
"""The word whose example is the list of all types."""
_SEEN = "it is told by a plan or a run"
NUMBERS = {code.title: int(code) for code in Code}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache(maxsize=1)
def explanations() -> tuple[Explanation, ...]:
    """All of them, in the order of the list."""
    return tuple(_entry(code, kind, value) for name, kind in FILES.items() for code, value in _file(name).items())


def find(word: str) -> list[Explanation]:
    """Whatever has this code or name: `3` is an error and an exit code."""
    wanted = plain(word)
    return [e for e in explanations() if wanted in {plain(n) for n in (e.code, *e.names)}]


def plain(word: str) -> str:
    """Names are compared without case, and without what separates their words."""
    found = re.sub(r"[\s_\-:]+", " ", word.strip().lower()).strip()
    return found or word.strip()


def _file(name: str) -> dict[str, Any]:
    text = (files("reconciler") / "explain" / f"{name}.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(text, _LOADER)
    return loaded


def _entry(code: str, kind: Kind, value: Mapping[str, Any]) -> Explanation:
    if code.startswith("status "):
        kind = "status"
    paths, encoding = value.get("paths", {}), value.get("encoding", {})
    return Explanation(
        code,
        kind,
        _title(code, value),
        value["means"],
        value["fix"],
        types_text() if code == TYPES else _example(value.get("bad")),
        _example(value.get("good")),
        value.get("not_run", _SEEN if kind in ("action", "word") else ""),
        Setting(value.get("alone", False), paths, encoding, tuple(value.get("also", ())), value.get("environment", {})),
        (*_names(code, kind), *value.get("names", ())),
    )


def _example(value: Any) -> Example | None:
    if isinstance(value, dict) and "repeat" in value:
        return Repeated(value["repeat"], value["times"], value["before"], value["after"])
    example: Example | None = value
    return example


def _title(code: str, value: Mapping[str, Any]) -> str:
    """Where there is a table of titles already, that is the one."""
    if code in NUMBERS:
        return f"{re.sub('(?<=[a-z])(?=[A-Z])', ' ', code).lower()} ({NUMBERS[code]})"
    return CODES.get(code) or TITLES.get(code) or str(value["title"])


def _names(code: str, kind: Kind) -> tuple[str, ...]:
    if kind == "error":
        number = str(NUMBERS[code])
        return (number, f"error {number}", re.sub("(?<=[a-z])(?=[A-Z])", "_", code))
    if kind == "blocked_by":
        return (code.removeprefix("allow:"),) if code.startswith("allow:") else ()
    first, _, rest = code.partition(" ")
    return (rest,) if rest and first in QUALIFIERS else ()
