"""What is known of Glue offline: names, limits, Hive types, and what it cannot do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.catalog.glue_capabilities import glue_capabilities
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import Change, DeclareTable, RenameNamespace, RenameTable, SyncColumns
from reconciler.model.ident import Ident, Kind
from reconciler.model.state import Column, Marks

GLUE = glue_capabilities({"root": "s3://lake/tables"})


@pytest.mark.parametrize(
    ("ident", "namespaces", "expected"),
    [
        (("db",), [], True),
        (("parent", "db"), [], False),
        (("parent", "db"), [("other_db",)], False),
        (("parent", "db"), [("parent", "other_db")], True),
        (("parent", "db"), [("parent", "child", "other_db")], True),
        (("parent", "db"), [("stepparent", "other_db")], False),
        (("parent", "child", "db"), [("parent", "other_db")], False),
        (("parent", "child", "db"), [("parent", "other_child", "other_db")], False),
    ],
)
def test_a_database_of_a_child_catalog_is_looked_for_where_an_identifier_leads_there(
    ident: Ident, namespaces: list[Ident], expected: bool
) -> None:
    assert GLUE.covers("Namespace", ident, namespaces) is expected
    assert glue_capabilities({"catalogs": True}).covers("Namespace", ident, namespaces)


@pytest.mark.parametrize("name", ["a.b", "a b", "größe", "50%", "$x", "select", "a-b_c", "日本", "x" * 255])
def test_names_that_glue_keeps(name: str) -> None:
    assert GLUE.ident_problem("Namespace", (name,)) is None
    assert GLUE.ident_problem("Table", ("db", name)) is None
    assert GLUE.ident_problem("Table", ("parent", "child", "db", name)) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Upper", "write 'upper'"),
        ("GRÖSSE", "write 'grösse'"),
        ("a/b", "'/'"),
        ("a\\b", "separates"),
        ("a\x1fb", "control"),
        ("a\nb", "control"),
        ("", "cannot be a name"),
        ("..", "cannot be a name"),
        ("x" * 256, "255"),
    ],
)
def test_names_that_it_would_change_or_refuse(name: str, why: str) -> None:
    for kind, ident in (("Namespace", (name,)), ("Table", ("db", name)), ("Table", (name, "t"))):
        problem = GLUE.ident_problem(kind, ident)  # type: ignore[arg-type]
        assert problem is not None
        assert why in problem


@pytest.mark.parametrize("scheme", ["", "file://", "FILE://"])
def test_names_that_no_local_folder_can_have(tmp_path: Path, scheme: str) -> None:
    local = glue_capabilities({"root": f"{scheme}{tmp_path}"})
    for name in ("x" * 249, "ö" * 124):
        assert local.ident_problem("Table", ("db", name)) is None
        (tmp_path / f"{name}.lance").mkdir(exist_ok=True)
    for ident in (("db", "x" * 250), ("db", "x" * 252), ("db", "ö" * 125), ("ö" * 128, "t")):
        assert "bytes" in str(local.ident_problem("Table", ident))
        with pytest.raises(OSError, match="too long"):
            tmp_path.joinpath(*ident[:-1], f"{ident[-1]}.lance").mkdir(parents=True)
    assert local.ident_problem("Namespace", ("ö" * 255,)) is None
    assert GLUE.ident_problem("Table", ("db", "ö" * 255)) is None


@pytest.mark.parametrize(("kind", "ident"), [("Table", ("t",)), ("Namespace", ())])
def test_depth(kind: Kind, ident: Ident) -> None:
    assert GLUE.ident_problem(kind, ident) is not None


@pytest.mark.parametrize(
    ("arrow", "hive"),
    [
        ("int8", "tinyint"), ("uint8", "smallint"), ("int16", "smallint"), ("uint16", "int"), ("int32", "int"),
        ("uint32", "bigint"), ("int64", "bigint"), ("uint64", "decimal(20,0)"), ("float16", "float"),
        ("float32", "float"), ("float64", "double"), ("bool", "boolean"), ("string", "string"),
        ("large_string", "string"), ("binary", "binary"), ("fixed_size_binary[16]", "binary"), ("blob", "binary"),
        ("date32", "date"), ("timestamp[us, tz=UTC]", "timestamp"), ("time64[us]", "string"),
        ("duration[ms]", "bigint"),
        ("decimal128(38, 10)", "decimal(38,10)"), ("decimal128(5, -2)", "decimal(7,0)"),
        ("decimal256(76, 10)", "string"), ("null", "string"), ("dictionary<int32, string>", "string"),
        ("list<int32>", "array<int>"), ("fixed_size_list<float32>[768]", "array<float>"),
        ("map<string, list<int64>>", "map<string,array<bigint>>"),
        ('struct<userId: int64, "a b": struct<C: date32>>', "struct<userId:bigint,`a b`:struct<C:date>>"),
    ],
)  # fmt: skip
def test_hive_types(arrow: str, hive: str) -> None:
    columns = GLUE.columns_of([Field("c", parse_type(arrow))])
    assert columns == (Column("c", hive),)


def test_columns_are_shown_in_lower_case_with_short_comments() -> None:
    text = parse_type("string")
    assert GLUE.columns_of([Field("UserId", text, nullable=False, comment="who\nit is")]) == (
        Column("userid", "string", True, "who it is"),
    )
    (column,) = GLUE.columns_of([Field("c", text, comment="x" * 300)]) or ()
    assert column.comment == "x" * 255


def test_schemas_that_cannot_be_shown() -> None:
    text = parse_type("string")
    assert GLUE.schema_problem([Field("a", text), Field("b", parse_type("struct<A: int8, a: int8>"))]) is None
    assert "'Id' and 'ID'" in str(GLUE.schema_problem([Field("Id", text), Field("x", text), Field("ID", text)]))
    assert "comment" in str(GLUE.schema_problem([Field("a", text, comment="x" * 256)]))
    assert "255" in str(GLUE.schema_problem([Field("a" * 256, text)]))


@pytest.mark.parametrize(
    ("kind", "key", "value", "fine"),
    [
        ("Table", "k" * 255, "v" * 512_000, True),
        ("Table", "k" * 256, "v", False),
        ("Table", "a\nb", "v", False),
        ("Table", "k", "v" * 512_001, False),
        ("Table", "table_type", "iceberg", False),
        ("Namespace", "table_type", "x", True),
        ("Table", "description", "d" * 2048, True),
        ("Table", "description", "d" * 2049, False),
        ("Table", "description", "", False),
        ("Namespace", "description", "d" * 2049, False),
        ("Namespace", "location", "s3://b/x", True),
        ("Namespace", "location", "", False),
        ("Namespace", "location", "x" * 1025, False),
        ("Table", "location", "", True),
    ],
)
def test_limits_of_properties(kind: Kind, key: str, value: str, fine: bool) -> None:
    assert (GLUE.property_problem(kind, key, value) is None) == fine


def test_locations() -> None:
    assert GLUE.location_of(("db", "a b%")) == "s3://lake/tables/db/a%20b%25.lance"
    assert GLUE.location_of(("cat", "db", "t")) == "s3://lake/tables/cat/db/t.lance"
    assert glue_capabilities({"root": "/data/"}).location_of(("db", "a b")) == "/data/db/a b.lance"
    assert glue_capabilities({}).location_of(("db", "t")) is None
    assert GLUE.location_problem(("db", "t"), "s3://elsewhere/t") is None
    for bad in ("s3://name:word@b/t", "data/t", "s3://b/" + "x" * 2056):
        assert GLUE.location_problem(("db", "t"), bad) is not None


def test_a_root_that_nobody_could_find() -> None:
    for root in ("lake", "./lake", "s3://user:word@bucket"):
        assert glue_capabilities({"root": root}).ident_problem("Namespace", ("db",)) is not None
    assert glue_capabilities({"root": "${env:ROOT}"}).ident_problem("Namespace", ("db",)) is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (RenameNamespace(("new",), ("old",)), "rename a database"),
        (RenameTable(("db", "new"), ("db", "old")), "rename a table"),
        (DeclareTable(("db", "t"), {}, Marks()), "spec.location"),
        (SyncColumns(("db", "t"), (Column("a", "int"), Column("a", "string"))), "'a' and 'a'"),
    ],
)
def test_what_glue_cannot_do(change: Change, word: str) -> None:
    assert word in str(glue_capabilities({}).refuses(change))


def test_a_refused_rename_never_advises_two_tables_at_one_place() -> None:
    """That is an error of its own (P104): the old one leaves first."""
    for change in (RenameTable(("db", "new"), ("db", "old")), RenameNamespace(("new",), ("old",))):
        said = str(GLUE.refuses(change))
        absent, declared = said.index("`state: absent` in one apply"), said.index("in the next")
        assert absent < declared
        assert "without renamedFrom" in said


def test_a_new_table_needs_a_place_from_somewhere() -> None:
    assert glue_capabilities({}).refuses(DeclareTable(("db", "t"), {}, Marks(), "s3://b/t")) is None
    assert GLUE.refuses(DeclareTable(("db", "t"), {}, Marks())) is None
    assert glue_capabilities({"root": "${env:R}"}).refuses(DeclareTable(("db", "t"), {}, Marks())) is None


def test_the_rules_are_known_without_boto3() -> None:
    code = (
        "import sys; from reconciler.catalog.glue_capabilities import glue_capabilities; glue_capabilities({});"
        "sys.exit(any(m in sys.modules for m in ('boto3', 'botocore', 'lance', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
