"""`default` and `backfill` of a column: values for the rows that exist already, judged as pylance would."""

from __future__ import annotations

import importlib
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.manifest.check_sql import BACKFILL, sql_problem
from reconciler.manifest.columns import default_sql
from reconciler.manifest.constants import Constant, constant_problem
from reconciler.manifest.documents import DefaultDoc
from reconciler.manifest.load import Loaded
from reconciler.model.arrow import Field, parse_type

from .support import CATALOG, codes, load_text, places, table

COLUMNS = {"id": "int64", "s": "string", "ts": "timestamp[us, tz=UTC]", "l": "list<int64>", "st": "struct<x: int64>"}
FIELDS = tuple(Field(name, parse_type(type_)) for name, type_ in COLUMNS.items())
RUNS = [
    "1",
    "id + 1",
    "ID + 1",
    "length(s)",
    "btrim(s)",
    "ltrim(s)",
    "'trim(x)'",
    "left(s, 1)",
    "strpos(s, 'a')",
    "st.x * 2",
    "l[1]",
    "coalesce(s, 'x') || 'y'",
    "cast(id as string)",
    "arrow_cast(id, 'Int8')",
    "date_part('year', ts)",
    "date_bin(interval '1 day', ts)",
    "regexp_like(s, '^a')",
    "id IS NOT DISTINCT FROM 1",
    "named_struct('a', id)",
]
REFUSED = {
    "id +": "M491",
    "id, s": "M491",
    "id; s": "M491",
    "id AS x": "M491",
    "CASE WHEN id > 1 THEN 1 END": "M492",
    "ts + interval '1 day'": "M492",
    "max(id)": "M492",
    "row_number() OVER ()": "M492",
    "(SELECT max(id) FROM t)": "M492",
    "trim(s)": "M492",
    "substring(s, 1, 2)": "M492",
    "substr(s, 1)": "M492",
    "floor(id)": "M492",
    "extract(year from ts)": "M492",
    "position('a' in s)": "M492",
    "s RLIKE 'a'": "M492",
    "id & 1": "M492",
    "id <=> 1": "M492",
    "l[1:2]": "M492",
    "ts AT TIME ZONE 'UTC'": "M492",
    "id = ANY(l)": "M492",
}


@pytest.fixture(scope="module")
def fragment(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceFragment:
    times = pa.array([1, 2, 3], pa.timestamp("us", tz="UTC"))
    rows = pa.table({"id": [1, 2, 3], "s": ["a", "b", None], "ts": times, "l": [[1], [2, 3], None]})
    rows = rows.append_column("st", pa.array([{"x": 1}, {"x": 2}, None]))
    dataset = lance.write_dataset(rows, str(tmp_path_factory.mktemp("backfill") / "t.lance"))
    return dataset.get_fragments()[0]


@pytest.mark.parametrize("sql", RUNS)
def test_what_validate_lets_pass_runs(fragment: lance.LanceFragment, sql: str) -> None:
    assert sql_problem(sql, FIELDS, (), BACKFILL) is None
    fragment.merge_columns({"new": sql})


@pytest.mark.parametrize("sql", REFUSED)
def test_what_would_not_run_is_refused(fragment: lance.LanceFragment, sql: str) -> None:
    problem = sql_problem(sql, FIELDS, (), BACKFILL)
    assert problem is not None
    assert problem.code == REFUSED[sql]
    if REFUSED[sql] == "M492":
        with pytest.raises((ValueError, OSError, NotImplementedError)):
            fragment.merge_columns({"new": sql})


def loaded(tmp_path: Path, *columns: str) -> Loaded:
    lines = "".join(f"  - {{{column}}}\n" for column in ("name: text, type: string", *columns))
    return load_text(tmp_path, CATALOG, table("t", f"schema:\n{lines}"))


def test_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, monkeypatch, "embed")
    found = loaded(
        tmp_path,
        "name: n, type: int32, backfill: {sql: length(text)}",
        "name: v, type: 'fixed_size_list<float32>[4]', backfill: {function: embed}",
        "name: d, type: date32, default: '2024-12-31'",
    )
    assert found.diagnostics == []
    fields = found.desired.tables["lake"][("t",)].fields
    assert fields is not None
    assert [(f.default, f.function) for f in fields] == [
        (None, None),
        ("length(text)", None),
        (None, "embed"),
        ("'2024-12-31'", None),
    ]


WRONG = {
    "name: a, type: int32, backfill: {sql: length(}": ("M491", "length("),
    "name: a, type: int32, backfill: {sql: max(text)}": ("M492", "max"),
    "name: a, type: int32, backfill: {sql: length(txt)}": ("M490", "length"),
    "name: a, type: int32, backfill: {sql: A + 1}": ("M493", "A + 1"),
    "name: a, type: int32, backfill: {function: nosuch}": ("M495", "nosuch"),
    "name: a, type: int32, backfill: '1'": ("M205", "'1'"),
    "name: a, type: int32, backfill: {}": ("M204", "{}"),
    "name: a, type: int32, backfill: {sql: '1', function: f}": ("M209", "{sql"),
    "name: a, type: int32, backfill: {sqll: '1', sql: '1'}": ("M203", "sqll"),
    "name: a, type: int32, default: x": ("M494", "x}"),
    "name: a, type: int8, default: 128": ("M494", "128"),
    "name: a, type: 'list<int8>', default: 1": ("M494", "1}"),
}


@pytest.mark.parametrize("column", WRONG)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, column: str) -> None:
    code, at = WRONG[column]
    found = loaded(tmp_path, column)
    assert codes(found) == [code]
    ((line, start),) = places(found, code)
    assert (tmp_path / "m.yaml").read_text().splitlines()[line - 1][start - 1 :].startswith(at)
    warns = code in ("M490", "M495")
    assert found.diagnostics[0].severity == ("warning" if warns else "error")


def test_one_backfill_does_not_read_another(tmp_path: Path) -> None:
    """Which of them comes first would matter."""
    found = loaded(tmp_path, "name: a, type: int32, default: 1", "name: b, type: int32, backfill: {sql: A + 1}")
    assert codes(found) == ["M493"]
    assert "'a'" in found.diagnostics[0].message


def test_a_date_that_yaml_takes_for_one(tmp_path: Path) -> None:
    (told,) = loaded(tmp_path, "name: a, type: date32, default: 2024-12-31").diagnostics
    assert (told.code, told.hint) == ("M205", 'write "2024-12-31"')


def test_a_broken_type_is_told_once(tmp_path: Path) -> None:
    assert codes(loaded(tmp_path, "name: a, type: int65, default: x")) == ["M211"]


def register(folder: Path, monkeypatch: pytest.MonkeyPatch, *functions: str, package: str = "extra") -> None:
    """What installing a package leaves behind. Its module is not there: validate never loads it."""
    info = folder / f"{package}_site" / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {package}_module:{name}\n" for name in functions)
    (info / "entry_points.txt").write_text(f"[reconciler.functions]\n{lines}")
    monkeypatch.syspath_prepend(str(info.parent))
    importlib.invalidate_caches()


def test_functions_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    column = "name: a, type: int32, backfill: {function: embed}"
    assert "no installed package" in loaded(tmp_path, column).diagnostics[0].hint
    register(tmp_path, monkeypatch, "embedd", "other")
    assert loaded(tmp_path, column).diagnostics[0].hint == "did you mean embedd?"
    far = loaded(tmp_path, "name: a, type: int32, backfill: {function: xyz}")
    assert far.diagnostics[0].hint == "known functions: embedd, other"
    register(tmp_path, monkeypatch, "embed", package="more")
    assert loaded(tmp_path, column).diagnostics == []
    register(tmp_path, monkeypatch, "embed", package="third")
    assert "two installed packages" in loaded(tmp_path, column).diagnostics[0].message


CONSTANTS: dict[str, tuple[list[Constant], list[Constant]]] = {
    "int8": ([-128, 127, 0], [128, -129, 1.0, "1", True]),
    "uint64": ([2**64 - 1], [-1, 2**64]),
    "int64": ([-(2**63)], [2**63]),
    "float16": ([1, 1.5, -65504], [65505, "1", True, float("inf")]),
    "float64": ([1e300], [float("nan"), float("-inf"), "x"]),
    "string": (["", "it's"], [1, True]),
    "large_binary": (["abc"], [1]),
    "bool": ([True, False], [0, "true"]),
    "dictionary<int8, string>": (["a"], [1]),
    "date32": (["2024-12-31"], ["2024-13-01", "20241231", "31.12.2024", 5]),
    "timestamp[us]": (["2024-12-31T23:59:59", "2024-12-31 23:59:59.5", "2024-12-31"], ["2024-12-31T23:59:59Z", "x"]),
    "timestamp[us, tz=UTC]": (["2024-12-31T23:59:59Z", "2024-12-31T23:59:59+02:00"], ["2024-12-31T23:59:59", 1]),
    "time64[us]": (["23:59:59", "23:59"], ["25:00:00", "23:59:59Z", 1]),
    "duration[ms]": ([5, -5], ["5", 1.5]),
    "decimal128(5, 2)": (
        [1, 1.25, "999.99", "-0.5", 0, "1.2500"],
        [1000, "1.234", "x", True, float("inf"), "1e9", "NaN", "0e9", "٣"],
    ),
    "decimal128(38, 2)": (
        ["123456789012345678901234567890123456.78"],
        ["1e999999999", "1e-999999999", "9" * 300, 10**300],
    ),
    "list<int8>": ([], [1, "x"]),
    "struct<a: int8>": ([], [1]),
    "fixed_size_binary[2]": ([], ["ab"]),
    "blob": ([], ["ab"]),
    "null": ([], [1]),
}


@pytest.mark.parametrize("type_", CONSTANTS)
def test_constants(fragment: lance.LanceFragment, type_: str) -> None:
    """A constant that is taken can be written by pylance as the type: DataFusion's name for it is asked from itself."""
    good, bad = CONSTANTS[type_]
    parsed = parse_type(type_)
    assert [v for v in good if constant_problem(v, parsed) is not None] == []
    assert [v for v in bad if constant_problem(v, parsed) is None] == []
    for value in good:
        sql = default_sql(DefaultDoc(name="new", type=type_, default=value))
        wanted = to_arrow_type(parsed)
        made = pa.array([None], wanted)
        name = fragment_type(fragment, made)
        fragment.merge_columns({"new": f"arrow_cast({sql}, '{name}')"})


def fragment_type(fragment: lance.LanceFragment, array: pa.Array) -> str:
    dataset = lance.write_dataset(pa.table({"c": array}), "memory://")
    return str(dataset.scanner(columns={"t": "arrow_typeof(c)"}).to_table()["t"][0])
