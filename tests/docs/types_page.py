"""docs/reference/types.md, made from the grammar, from what Lance can store and from the words of other systems."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.catalog.lance_types import type_problem
from reconciler.manifest.type_words import PLAIN
from reconciler.model.arrow import parse_type
from reconciler.model.arrow_forms import FORMS
from reconciler.model.arrow_grammar import ALIASES, MAX_DEPTH, UNITS

PYARROW = (
    "date32[day]",
    "list<item: string>",
    "dictionary<values=string, indices=int32, ordered=0>",
)
"""Spellings of pyarrow that are read, beside the aliases."""
NOT_STORED = (
    "fixed_size_list<string>[4]",
    "fixed_size_list<float32 not null>[4]",
    "dictionary<int32, date32>",
    "dictionary<int32, list<string>>",
    "map<string, blob>",
    "map<null, string>",
)
"""The grammar reads them; a Lance table cannot have them."""
WRITTEN_OUT = """\
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [shop, people]}
spec:
  schema:
    - {name: id, type: int64, nullable: false}
    - {name: joined, type: "timestamp[us, tz=UTC]"}
    - {name: face, type: "fixed_size_list<float32>[512]"}
    - name: address
      fields:
        - {name: street, type: string, comment: with the number}
        - {name: zip, type: string, nullable: false}
    - name: orders
      type: list<struct>
      fields:
        - {name: at, type: "timestamp[us]"}
        - {name: total, type: "decimal128(18, 2)"}
"""


def types_page(made: str) -> str:
    return "\n".join(_lines(made))


def _lines(made: str) -> Iterator[str]:
    yield "# Types of columns\n"
    yield made.format(source="grammar of types")
    yield (
        "The `type` of a column is an Arrow type. `reconciler explain types` prints this list. Inside of\n"
        '`{ }` types with a bracket, a comma or a colon are quoted: `{name: at, type: "timestamp[us, tz=UTC]"}`.\n'
    )
    yield "| type | written | holds |\n|---|---|---|"
    for name, form in FORMS.items():
        examples = ", ".join(f"`{s}`" for s in form.spellings) + (f", or {form.also}" if form.also else "")
        yield f"| {name} | {examples} | {form.holds} |"
    yield ""
    for name, units in UNITS.items():
        yield f"- The unit of `{name}` is one of {', '.join(f'`{u}`' for u in units)}."
    yield "- `tz` is a name such as `UTC`, `Europe/Berlin` or `+02:00`."
    yield "- `T not null` inside of a list, a struct or a map: those values are never missing. For the column itself"
    yield "  that is `nullable: false` beside `type`."
    yield '- A field of a struct whose name is no plain word is quoted: `struct<"first name": string>`.'
    yield f"- Types nest, {MAX_DEPTH} levels deep at most.\n"
    yield "## In a manifest\n"
    yield "A struct, also one in a list or a map, may be written out, so that its fields have comments and metadata:\n"
    yield f"```yaml\n{WRITTEN_OUT}```\n"
    yield "## Other spellings\n"
    yield "What pyarrow prints is read, and means the same:\n"
    yield "| read | is |\n|---|---|"
    for text in (*ALIASES, *PYARROW):
        yield f"| `{text}` | `{parse_type(text)}` |"
    yield ""
    yield "Words of SQL and of other systems are not read, because they mean different things in different places."
    yield "`validate` says what to write instead:\n"
    yield "| there | here | |\n|---|---|---|"
    yield from _words()
    yield ""
    yield "## What Lance cannot store\n"
    yield "Types that are well written and that no table can have; `validate` says so:\n"
    yield "| type | |\n|---|---|"
    for text in NOT_STORED:
        yield f"| `{text}` | {_plain(type_problem(parse_type(text)) or '')} |"
    yield ""


def _words() -> Iterator[str]:
    for found in dict.fromkeys(PLAIN.values()):
        words = ", ".join(f"`{word}`" for word, ours in PLAIN.items() if ours is found)
        yield f"| {words} | `{found.text}` | {_plain(found.note)} |"
    yield "| `decimal(10, 2)`, `numeric(10, 2)` | `decimal128(10, 2)` |  |"
    yield "| `vector(16)`, `array<float, 16>`, `float32[16]` | `fixed_size_list<float32>[16]` |  |"


def _plain(text: str) -> str:
    """Markdown would take `<` for markup."""
    return text.replace("<", "\\<")
