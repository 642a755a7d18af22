"""Import into columns whose fields are written out, and into texts of several lines: what stays keeps its form."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reconciler.app_import import ImportRequest, import_catalogs
from reconciler.model.arrow import Field, ListOf, Struct, parse_type
from reconciler.model.observed import Present, Snapshot
from reconciler.model.reading import Reading
from reconciler.model.state import DatasetState, NamespaceState, TableState

from .test_reimport import HEAD, Live, declared, imported, snapshot, table

TABLE = """\
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [a, t]}
spec:
"""
WRITTEN = f"""\
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {{catalog: lake, id: [a]}}
spec: {{properties: {{team: x}}}}
---
{TABLE}  schema:
  - name: s                               # about s
    fields:
      - {{name: a, type: string}} # aa
      # before b
      - {{name: b, type: string}}
    comment: why
  - name: l
    type: list<struct>
    fields:
      - name: in                          # inner
        fields:
          - {{name: x, type: int8}}         # deep
          - {{name: y, type: int8}}
  - {{name: m, type: 'map<string, struct>', fields: [{{name: k, type: int8}}]}}
"""
SAME = (
    "s:struct<a: string, b: string>",
    "l:list<struct<in: struct<x: int8, y: int8>>>",
    "m:map<string, struct<k: int8>>",
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "live/lake").mkdir(parents=True)
    (tmp_path / "live/lake/catalog.yaml").write_text(HEAD)
    (tmp_path / "live/lake/a.yaml").write_text(WRITTEN)
    return tmp_path


def live(*columns: str | Field, comment: str | None = "why") -> Snapshot:
    fields = tuple(
        c if isinstance(c, Field) else Field(c.split(":", 1)[0], parse_type(c.split(":", 1)[1])) for c in columns
    )
    fields = tuple(Field(f.name, f.type, f.nullable, comment) if f.name == "s" else f for f in fields)
    state = Present(TableState("x", {}, dataset=DatasetState(fields)))
    return Snapshot({("a",): Present(NamespaceState({"team": "x"}))}, {("a", "t"): state})


def after(files: Path, found: Snapshot) -> tuple[str, list[str]]:
    """Stable: another import finds nothing to do."""
    _, said = imported(files, found)
    assert imported(files, found)[0] == []
    return (files / "live/lake/a.yaml").read_text(), said


def test_nothing_differs(files: Path) -> None:
    assert after(files, live(*SAME)) == (WRITTEN, [])


@pytest.mark.parametrize(
    ("columns", "old", "new"),
    [
        (
            ("s:struct<a: string, b: string, c: int8>", *SAME[1:]),
            "      - {name: b, type: string}\n",
            "      - {name: b, type: string}\n      - {name: c, type: int8}\n",
        ),
        (("s:struct<b: string, a: int8>", *SAME[1:]), "{name: a, type: string} # aa", "{name: a, type: int8} # aa"),
        (("s:struct<a: string>", *SAME[1:]), "      - {name: b, type: string}\n", ""),
        (
            ("s:struct<a: string not null, b: string>", *SAME[1:]),
            "{name: a, type: string} # aa",
            "{name: a, type: string, nullable: false} # aa",
        ),
        (
            (SAME[0], "l:list<struct<in: struct<x: int16, y: int8>>>", SAME[2]),
            "{name: x, type: int8}         # deep",
            "{name: x, type: int16}         # deep",
        ),
        (
            (SAME[0], "l:large_list<struct<in: struct<x: int8, y: int8>, z: bool>>", SAME[2]),
            "list<struct>",
            "large_list<struct>",
        ),
        ((*SAME[:2], "m:map<string, struct<k: int16>>"), "{name: k, type: int8}", "{name: k, type: int16}"),
        ((*SAME[:2], "m:map<string, struct<k: int8> not null>"), "struct>', f", "struct not null>', f"),
    ],
)  # fmt: skip
def test_one_field_differs(files: Path, columns: tuple[str, ...], old: str, new: str) -> None:
    text, said = after(files, live(*columns))
    more = "      - {name: z, type: bool}\n" if "z: bool" in columns[1] else ""
    wanted = WRITTEN.replace(old, new)
    assert text == (wanted.replace("  - {name: m", more + "  - {name: m") if more else wanted)
    assert said == []


def test_comments_of_fields_follow(files: Path) -> None:
    inner = Struct(
        (Field("a", parse_type("string"), True, "live"), Field("b", parse_type("string"), True, None, {"k": "v"}))
    )
    text, _ = after(files, live(Field("s", inner), *SAME[1:]))
    assert "- {name: a, type: string, comment: live} # aa\n" in text
    assert "- {name: b, type: string, metadata: {k: v}}\n" in text


def test_what_is_to_be_renamed_or_left_to_others_stays(files: Path) -> None:
    before = WRITTEN.replace("{name: a, type: string}", "{name: a, type: string, renamedFrom: old}").replace(
        "spec:\n  schema", "spec:\n  ignoreDifferences: [schema.s.b, schema.l.item.in.y.type]\n  schema"
    )
    (files / "live/lake/a.yaml").write_text(before)
    found = live("s:struct<old: string, b: bool>", "l:list<struct<in: struct<x: int8, y: bool>>>", SAME[2])
    assert after(files, found) == (before, [])


def test_extra_fields_are_not_added_with_at_least(files: Path) -> None:
    before = WRITTEN.replace("spec:\n  schema", "spec:\n  schemaMode: at_least\n  schema")
    (files / "live/lake/a.yaml").write_text(before)
    assert after(files, live("s:struct<a: string, b: string, c: int8>", *SAME[1:])) == (before, [])
    text, _ = after(files, live("s:struct<c: int8>", *SAME[1:]))
    assert "    type: 'struct<c: int8>'\n" in text


def test_fields_that_have_no_place_any_more_are_told(files: Path) -> None:
    text, said = after(files, live(SAME[0], "l:int64", SAME[2]))
    assert "  - name: l\n    type: int64\n  - {name: m" in text
    assert said == ["note: lake:a.t: the fields of column l are another type live: written anew, in one piece"]


def test_a_column_that_gets_fields_has_them_in_its_place(files: Path) -> None:
    """Annotated fields are written out; the keys around them stay where they are."""
    inner = ListOf("list", Struct((Field("a", parse_type("string"), True, "live"),)))
    text, said = after(files, live(Field("s", inner), *SAME[1:]))
    column = yaml.safe_load(text.split("---\n")[1])["spec"]["schema"][0]
    assert column["fields"] == [{"name": "a", "type": "string", "comment": "live"}]
    assert text.index("    fields:\n    - {name: a") < text.index("    comment: why\n") < text.index("  - name: l\n")
    assert len(said) == 1


def test_an_overlay_does_not_get_a_part_of_a_list(files: Path) -> None:
    (files / "live/overlays/prod").mkdir(parents=True)
    (files / "live/overlays/prod/x.yaml").write_text(TABLE + "  description: ours\n")
    said: list[str] = []
    session = Live(said.append)
    session.snapshot = live("s:struct<a: string, b: string, c: int8>", *SAME[1:])
    folder = files / "live"
    done = import_catalogs(ImportRequest((str(folder),), folder, Reading({}, environment="prod")), session)
    assert done.changes == []
    assert any("other environments share `spec.schema`" in line for line in said)


BLOCK = (
    TABLE
    + """\
  description: |  # for people
    All of them, by ${var:team:-ada}.
    One row each.
  properties:
    note: >-
      folded text that was
      broken by hand
  schema:
  - {name: id, type: int64}
"""
)


def described(files: Path, description: str, note: str = "folded text that was broken by hand") -> str:
    (files / "live/lake/a.yaml").write_text(BLOCK)
    found = snapshot(t=table("id:int64", properties={"description": description, "note": note}))
    text, _ = after(files, found)
    assert declared(files).tables["lake"][("a", "t")].properties == {"description": description, "note": note}
    return text.partition("---\n")[0]


def test_a_text_of_lines_keeps_its_form_and_its_references(files: Path) -> None:
    assert described(files, "All of them, by ada.\nTwo rows.\n\nAnd ${x}.\n") == BLOCK.replace(
        "    One row each.\n", "    Two rows.\n\n    And $${x}.\n"
    )
    assert "description: |-  # for people\n    only\n  properties" in described(files, "only")
    assert "note: >-\n      one two three four\n      five six\n\n\n      b\n" in described(
        files, "All of them, by ada.\nOne row each.\n", "one two three four five six\n\nb"
    )


@pytest.mark.parametrize("value", [" led by a space\n", "two ends\n\n", "bell \x07\n", "\n", "zero\u200bwidth\n"])
def test_a_value_that_has_no_such_form_is_quoted(files: Path, value: str) -> None:
    line = next(line for line in described(files, value).splitlines() if "description" in line)
    assert line.startswith('  description: "')
    assert line.isprintable()


@pytest.mark.parametrize("char", ["\u200b", "\u202e", "\u2066", "\xa0", "\u3164", "\U000e0001", "\u2028"])
def test_characters_that_nobody_sees_are_written_as_escapes(files: Path, char: str) -> None:
    """In new documents and in those that are there, as keys and as values."""
    properties = {"a": f"x{char}y", f"k{char}": "é"}
    (files / "live/lake/a.yaml").write_text(WRITTEN + "---\n" + BLOCK.replace("[a, t]", "[a, u]"))
    found = {n: table("id:int64", properties=properties) for n in ("u", "w")}
    imported(files, snapshot(**found))
    text = (files / "live/lake/a.yaml").read_text()
    assert char not in text
    assert "é" in text
    tables = declared(files).tables["lake"]
    assert [tables["a", n].properties for n in ("u", "w")] == [properties] * 2
