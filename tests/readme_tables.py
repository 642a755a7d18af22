"""The README's tables about catalogs, made from the schema and by asking the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.catalog.registry import capabilities_of
from reconciler.manifest.schema_files import options_of, schema
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import NOT_OPTIONS, CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident, Kind
from reconciler.model.state import Marks

DEEPEST = 6
LONGEST = 1_000_000


def keys_table(type_: str) -> str:
    """The options of a type, without the keys that every type has."""
    options = options_of(type_)
    assert options is not None
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    keys = {k: v for k, v in options["properties"].items() if k not in NOT_OPTIONS}
    for key, rule in keys.items():
        lines.append(_key_row(key, rule, key in options["required"]))
    for pattern, rule in options["patternProperties"].items():
        lines.append(_key_row(pattern.strip("^").replace("\\", "") + "*", rule, False))
    return "\n".join(lines) + "\n"


def _key_row(key: str, rule: Mapping[str, Any], required: bool) -> str:
    default = "**required**" if required else _shown(rule.get("default"))
    secret = " *Secret.*" if rule.get("x-secret") else ""
    return f"| `{key}` | {_value(rule)} | {default} | {rule['description']}{secret} |"


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _value(rule: Mapping[str, Any]) -> str:
    if "$ref" in rule:
        rule = schema("manifest")["$defs"][rule["$ref"].removeprefix("#/$defs/")]
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if "boolean" in types:
        return "true or false"
    if "integer" in types:
        return f"{rule.get('x-unit', 'number')}, {rule['minimum']} to {rule['maximum']}"
    return "address" if "https?" in rule.get("pattern", "") else "text"


def source_table() -> str:
    """The keys of a data source, with the formats that have them."""
    rows: dict[tuple[str, str, bool], list[str]] = {}
    for format_ in schema("manifest")["$defs"]["source"]["properties"]["format"]["enum"]:
        rule = schema("manifest")["$defs"][f"source.{format_}"]
        patterns = {p.strip("^").replace("\\", "") + "*": r for p, r in rule.get("patternProperties", {}).items()}
        for key, found in {**rule["properties"], **patterns}.items():
            if key != "format":
                default = f" Default {_shown(found['default'])}." if "default" in found else ""
                secret = bool(found.get("x-secret"))
                rows.setdefault((key, found["description"] + default, secret), []).append(
                    f"**{format_}**" if key in rule["required"] else format_
                )
    lines = ["| key | of (**required**) | |", "|---|---|---|"]
    for (key, text, secret), formats in rows.items():
        lines.append(f"| `{key}` | {', '.join(formats)} | {text}{' *Secret.*' if secret else ''} |")
    return "\n".join(lines) + "\n"


@dataclass
class Sample:
    """A backend with the options of its example, and identifiers that it takes."""

    capabilities: Capabilities
    first: str

    def ident(self, depth: int, last: str = "t") -> Ident:
        above = (self.first, "a", "b", "c", "d", "e")[: depth - 1]
        return (*above, last)

    def depths(self, kind: Kind) -> list[int]:
        own = lambda d: self.ident(d) if d > 1 else (self.first,)  # noqa: E731
        return [d for d in range(1, DEEPEST + 1) if self.capabilities.ident_problem(kind, own(d)) is None]

    @property
    def table(self) -> int:
        """The depth of a table inside a namespace."""
        return max(2, min(self.depths("Table")))

    def t(self, name: str = "t") -> Ident:
        return self.ident(self.table, name)

    def ns(self, name: str = "n") -> Ident:
        return self.ident(self.table - 1, name)

    def yes(self, change: c.Change) -> str:
        return "yes" if self.capabilities.refuses(change) is None else "no"


def _depths(kind: Kind) -> Callable[[Sample], str]:
    def row(sample: Sample) -> str:
        found = sample.depths(kind)
        return f"{found[0]} or more" if found[-1] == DEEPEST else " or ".join(map(str, found))

    return row


CHARACTERS = {
    "upper case": "T", ".": "a.b", "space": "a b", "/": "a/b", "\\": "a\\b", "$": "a$b", "%": "a%b", "#": "a#b",
    "'": "a'b", "non-ASCII": "ü", "control characters": "a\tb",
}  # fmt: skip


def _refused(kind: Kind) -> Callable[[Sample], str]:
    """Characters of tables inside a namespace, or of namespaces."""

    def row(sample: Sample) -> str:
        ident = sample.t if kind == "Table" else sample.ns
        bad = [n for n, name in CHARACTERS.items() if sample.capabilities.ident_problem(kind, ident(name))]
        return ", ".join(n if len(n) > 1 else f"`{n}`" for n in bad)

    return row


def _longest_name(sample: Sample) -> str:
    return str(_longest(lambda size: sample.capabilities.ident_problem("Table", sample.t("t" * size)), 5_000))


def _longest_value(sample: Sample) -> str:
    found = _longest(lambda size: sample.capabilities.property_problem("Table", "k", "v" * size), LONGEST)
    return "any" if found == LONGEST else f"{found} characters"


def _longest(problem: Callable[[int], str | None], most: int) -> int:
    """The largest size that is no problem; sizes beyond a problem are problems too."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if problem(middle) else (middle, high)
    return low


def _table_properties(sample: Sample) -> str:
    if sample.capabilities.replaces_tables:
        return "by a replacement, `replace_table`"
    return sample.yes(c.UpdateTable(sample.t(), {"k": "v"}, (), Marks()))


def _columns(sample: Sample) -> str:
    if sample.capabilities.columns_of([Field("a", parse_type("int64"))]) is None:
        return "no"
    return "yes, by a replacement, `replace_table`" if sample.capabilities.replaces_tables else "yes, kept in step"


def _location(sample: Sample) -> str:
    if not sample.capabilities.chooses_location:
        return "the catalog"
    by_rule = sample.capabilities.location_of(sample.t()) is not None
    return "`location`, or below `root`" if by_rule else "`location`"


ROWS: dict[str, Callable[[Sample], str]] = {
    "names in a namespace's id": _depths("Namespace"),
    "names in a table's id": _depths("Table"),
    "not possible in a namespace's name": _refused("Namespace"),
    "not possible in a table's name": _refused("Table"),
    "longest table name (ASCII)": _longest_name,
    "namespace properties change": lambda s: s.yes(c.UpdateNamespace(s.ns(), {"k": "v"}, (), Marks())),
    "table properties change": _table_properties,
    "longest property value": _longest_value,
    "namespaces are renamed": lambda s: s.yes(c.RenameNamespace(s.ns("m"), s.ns("n"))),
    "tables are renamed": lambda s: s.yes(c.RenameTable(s.t("u"), s.t("t"))),
    "shows columns of its own": _columns,
    "who says where a new table goes": _location,
    "an empty namespace is dropped": lambda s: (
        "with `drop_namespace`" if s.capabilities.drop_needs_allow else s.yes(c.DropNamespace(s.ns()))
    ),
    "calls at a time": lambda s: str(s.capabilities.max_parallelism),
}


def sample(spec: Mapping[str, Any]) -> Sample:
    options = {k: v for k, v in spec.items() if k not in NOT_OPTIONS}
    found = capabilities_of(CatalogSpec("lake", spec["type"], options, Management(), Source("-")))
    assert found is not None
    return Sample(found, str(options.get("catalog", "w")))


def capability_table(specs: Mapping[str, Mapping[str, Any]]) -> str:
    """`specs`: of the README's own minimal documents, by type."""
    samples = {type_: sample(spec) for type_, spec in specs.items()}
    lines = ["| | " + " | ".join(f"`{t}`" for t in samples) + " |", "|---" * (len(samples) + 1) + "|"]
    for title, ask in ROWS.items():
        lines.append(f"| {title} | " + " | ".join(ask(s).replace("|", "\\|") for s in samples.values()) + " |")
    return "\n".join(lines) + "\n"
