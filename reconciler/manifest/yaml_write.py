"""Data as YAML text: the one way in which manifests are written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_ONE_LINE = 1_000_000


@lru_cache(maxsize=1)
def _dumper() -> Any:
    import yaml

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return Dumper


def as_block(value: Any) -> str:
    """Lines, with mappings and lists of plain values in one line each."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, default_flow_style=None, allow_unicode=True, width=_ONE_LINE
    )
    return text


def as_lines(value: Any) -> str:
    """As `as_block`, and what stands on the outside has no brackets."""
    if isinstance(value, dict):
        return "".join(
            as_block({k: v}) if isinstance(v, dict | list) else f"{as_scalar(k)}: {as_scalar(v)}\n"
            for k, v in value.items()
        )
    return "".join(as_block([v]) if isinstance(v, dict | list) else f"- {as_scalar(v)}\n" for v in value)


def as_flow(value: Any) -> str:
    """One line with brackets, wherever it is put."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_scalar(k)}: {as_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_flow, value)) + "]"
    return as_scalar(value)


def as_scalar(value: Any, quote: str = "") -> str:
    """One line, good in every place. `quote`: `'` or `"` where that can hold it."""
    import yaml

    if not isinstance(value, str):
        quote = ""
    elif any(c in value for c in "\n\r\t\x85\u2028\u2029") or not value.isprintable():
        quote = '"'
    text: str = yaml.dump(
        [value],
        Dumper=_dumper(),
        default_style=quote or None,
        default_flow_style=True,
        allow_unicode=True,
        width=_ONE_LINE,
    )
    return text.strip()[1:-1]
