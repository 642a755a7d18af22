"""What a source or a cast would change without a word is an error, and the manifest has a word for who wants it."""

from __future__ import annotations

import csv as python_csv
import gzip
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pipeline import csv_text
from reconciler.pipeline.column_casts import Misfit, cast_all
from reconciler.pipeline.conform import Rules
from reconciler.pipeline.file_reader import FileError, read_batches
from reconciler.pipeline.source_fit import fits

UTC = pa.timestamp("us", "UTC")
SECONDS = 1_700_000_000
UNIT = "columns: {c: {unit: s}}"


def read(uri: Path, target: pa.Schema, format_: str, rules: Rules, **options: Any) -> pa.Table:
    found = read_batches(str(uri), format_, options, None, target, {}, size=uri.stat().st_size, rules=rules)
    return pa.Table.from_batches(found, target)


def parquet(folder: Path, values: Any, wanted: pa.DataType, rules: Rules) -> list[Any]:
    pq.write_table(pa.table({"c": values}), folder / "a.parquet")
    found = read(folder / "a.parquet", pa.schema([("c", wanted)]), "parquet", rules).column("c")
    return list((found.cast(pa.int64()) if pa.types.is_temporal(wanted) else found).to_pylist())


def csv(folder: Path, text: str | bytes, rules: Rules | None = None, **columns: pa.DataType) -> dict[str, list[Any]]:
    (folder / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return dict(read(folder / "a.csv", pa.schema(list(columns.items())), "csv", rules or Rules()).to_pydict())


# numbers that count


NUMBERS = [pa.int64(), pa.int32(), pa.uint32(), pa.float64(), pa.decimal128(20, 0)]


@pytest.mark.parametrize("wanted", [UTC, pa.timestamp("s"), pa.duration("us")], ids=str)
@pytest.mark.parametrize("given", NUMBERS, ids=str)
def test_numbers_are_no_times_until_their_unit_is_stated(tmp_path: Path, given: Any, wanted: Any) -> None:
    values = pa.array([SECONDS, None]).cast(given)
    for lax in (Rules(typed=True), Rules(typed=True, casts=frozenset("c"))):
        with pytest.raises(
            FileError, match=r"nothing says what its numbers count: write `columns: \{c: \{unit: s\}\}`"
        ):
            parquet(tmp_path, values, wanted, lax)
        (problem,) = fits(pa.schema([("c", given)]), pa.schema([("c", wanted)]), {}, "parquet", lax)
        assert UNIT in problem
    for unit, per_second in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items():
        counts = pa.array([SECONDS * per_second, None]).cast(given) if given == pa.int64() else values
        seconds = SECONDS if given == pa.int64() else SECONDS // per_second
        if given != pa.int64() and SECONDS % per_second:
            continue
        rules = Rules(typed=True, units=(("c", unit),))
        ticks = seconds * (1 if wanted == pa.timestamp("s") else 10**6)
        assert parquet(tmp_path, counts, wanted, rules) == [ticks, None], unit


def test_counts_deep_inside_and_what_does_not_fit(tmp_path: Path) -> None:
    given = pa.struct([("at", pa.list_(pa.int64())), ("n", pa.int64())])
    wanted = pa.struct([("at", pa.list_(UTC)), ("n", pa.int64())])
    values = pa.array([{"at": [SECONDS, None], "n": 5}, None], given)
    with pytest.raises(FileError, match="nothing says what its numbers count"):
        parquet(tmp_path, values, wanted, Rules(typed=True, casts=frozenset("c")))
    found = parquet(tmp_path, values, wanted, Rules(typed=True, units=(("c", "s"),)))
    assert found[1] is None
    assert (found[0]["at"][0].timestamp(), found[0]["at"][1], found[0]["n"]) == (SECONDS, None, 5)
    with pytest.raises(FileError, match="out of bounds"):
        parquet(tmp_path, pa.array([2**62]), UTC, Rules(typed=True, units=(("c", "s"),)))
    with pytest.raises(FileError, match="lose data"):
        parquet(tmp_path, pa.array([1001]), UTC, Rules(typed=True, units=(("c", "ns"),)))
    with pytest.raises(FileError, match="outside of a day"):
        parquet(tmp_path, pa.array([86_400]), pa.time32("s"), Rules(typed=True, units=(("c", "s"),)))
    with pytest.raises(FileError, match="`unit` is for numbers"):
        parquet(tmp_path, pa.array([0], pa.timestamp("us")), UTC, Rules(typed=True, units=(("c", "s"),)))


def test_counts_in_texts(tmp_path: Path) -> None:
    rules = Rules(units=(("c", "ms"),))
    (at,) = csv(tmp_path, f"c\n{SECONDS}123\n", rules, c=UTC)["c"]
    assert at.timestamp() == SECONDS + 0.123
    with pytest.raises(FileError, match="invalid value '17'"):
        csv(tmp_path, "c\n17\n", c=UTC)
    (tmp_path / "a.json").write_text(f'{{"c": {SECONDS}123}}\n')
    (at,) = read(tmp_path / "a.json", pa.schema([("c", UTC)]), "json", rules).column("c").to_pylist()
    assert at.timestamp() == SECONDS + 0.123


# digits


@pytest.mark.parametrize("text", ["0x10", "-0X1f", "0xg"])
@pytest.mark.parametrize("wanted", [pa.int8(), pa.int64(), pa.dictionary(pa.int32(), pa.int16())], ids=str)
def test_a_number_is_written_in_decimal_digits(tmp_path: Path, text: str, wanted: pa.DataType) -> None:
    with pytest.raises(FileError, match=rf"a\.csv:4: column 'n': '{text}' is no"):
        csv(tmp_path, f'n,t\n 1 ,"a\nb"\n{text},"c"\n', n=wanted, t=pa.string())
    assert csv(tmp_path, "n,t\n 1 ,\n,0x10\n", n=wanted, t=pa.string()) == {"n": [1, None], "t": ["", "0x10"]}
    if pa.types.is_integer(wanted):
        with pytest.raises(Misfit, match=rf"the value '{text}' cannot be made"):
            cast_all("n", pa.array(["7", text]), wanted)


FLOATS = [pa.float32(), pa.float64()]


@pytest.mark.parametrize("wanted", FLOATS, ids=str)
def test_digits_of_a_decimal_that_a_float_does_not_have(tmp_path: Path, wanted: pa.DataType) -> None:
    many = pa.array([Decimal("0.10"), Decimal("1234567890123456789.25"), None], pa.decimal128(30, 2))
    with pytest.raises(
        FileError, match=r"does not have all digits of a value \(first at Decimal\('1234567890123456789\.25"
    ):
        parquet(tmp_path, many, wanted, Rules(typed=True))
    nested = pa.array([[Decimal("1234567890123456789.25")]], pa.list_(pa.decimal128(30, 2)))
    with pytest.raises(FileError, match="does not have all digits"):
        parquet(tmp_path, nested, pa.list_(wanted), Rules(typed=True))
    lax = Rules(typed=True, casts=frozenset("c"))
    assert parquet(tmp_path, many, wanted, lax)[2] is None
    few = pa.array([Decimal("0.10"), Decimal("-99.99"), None], pa.decimal128(30, 2))
    assert parquet(tmp_path, few, wanted, Rules(typed=True)) == [pytest.approx(0.1), pytest.approx(-99.99), None]


# text


def take(data: bytes, chunk: int) -> None:
    quotes = csv_text.Quotes(",", '"')
    for start in range(0, len(data), chunk):
        quotes.take(data[start : start + chunk])
    quotes.take(b"", last=True)


OPEN = "a quote begins here and is never closed"
AFTER = "a quote begins here, and text follows where it is closed"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('t,n\na,1\n"b,2\nc,3\nd,4\n', 3, OPEN),
        ('t,n\na,1\n"b,2\n"c",3\nd,4\n', 3, AFTER),
        ('t,n\n"a\nb",1\nx,2\n"b"",2\n', 5, OPEN),
        ('t,n\na,"1', 2, OPEN),
        ('t,n\n"a" b,1\n', 2, AFTER),
        ('\ufeff"t,n\na,1\n', 1, OPEN),
        ('t,n\nx 5" pipe,1\n"b,2\n', 3, OPEN),
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 1000])
def test_a_quote_that_is_not_closed(tmp_path: Path, text: str, line: int, why: str, chunk: int) -> None:
    data = text.encode()
    with pytest.raises(csv_text.TextProblem, match=why) as raised:
        take(data, chunk)
    assert raised.value.line == line
    if chunk == 1:
        for name, packed in (("a.csv", data), ("a.csv.gz", gzip.compress(data))):
            (tmp_path / name).write_bytes(packed)
            with pytest.raises(FileError, match=rf"{name}:{line}: {why}"):
                read(tmp_path / name, pa.schema([("t", pa.string()), ("n", pa.int8())]), "csv", Rules())


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 1000])
def test_quotes_that_are_fine(tmp_path: Path, chunk: int) -> None:
    text = '\ufeff"t",n\n"a ""b"" c",1\r\n"",2\n"x\n,y""",3\n5" pipe,4\n"""",5\nlast,"6"'
    data = text.encode()
    take(data, chunk)
    if chunk == 1:
        found = csv(tmp_path, data, t=pa.string(), n=pa.int8())
        assert found == {"t": ['a "b" c', "", 'x\n,y"', '5" pipe', '"', "last"], "n": [1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("t,n\na,1\n\nb,x\n", 4, "column 'n': 'x' is no int8"),
        ("t,n\na,1\nb,2,3\n", 3, "Expected 2 columns, got 3"),
        ('t,f\n"a\nb",1\nc,1.5.5\n', 4, "column 'f': '1.5.5' is no float32"),
    ],
)
def test_what_is_wrong_in_a_csv_is_told_with_its_line(tmp_path: Path, text: str, line: int, why: str) -> None:
    types = {"t": pa.string(), "n": pa.int8(), "f": pa.float32()}
    with pytest.raises(FileError, match=rf"a\.csv:{line}: .*{why}"):
        csv(tmp_path, text, **{name: types[name] for name in text.splitlines()[0].split(",")})


# bytes


def test_a_flipped_bit_in_a_parquet_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"n": pa.array(range(1000), pa.int64())})
    pq.write_table(rows, path, write_page_checksum=True, compression="none", use_dictionary=False)
    target = pa.schema([("n", pa.int64())])
    assert read(path, target, "parquet", Rules(typed=True)).column("n").to_pylist() == list(range(1000))
    data = bytearray(path.read_bytes())
    data[data.index((500).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"a\.parquet: .*CRC checksum verification failed"):
        read(path, target, "parquet", Rules(typed=True))


@given(st.lists(st.lists(st.text('a"\n\r ,;', max_size=6), min_size=2, max_size=2), max_size=12), st.integers(1, 40))
def test_what_a_csv_writer_writes_is_fine_in_chunks_of_any_size(rows: list[list[str]], chunk: int) -> None:
    written = io.StringIO()
    python_csv.writer(written).writerows(rows)
    take(written.getvalue().encode(), chunk)
    quoted = io.StringIO()
    python_csv.writer(quoted, quoting=python_csv.QUOTE_ALL).writerows([*rows, ["x", "y"]])
    with pytest.raises(csv_text.TextProblem):
        take(quoted.getvalue().encode().rstrip()[:-1], chunk)


@pytest.mark.parametrize("text", ["1e400", "-1e400", "0x10", "1_000"])
@pytest.mark.parametrize("wanted", [*FLOATS, pa.float16(), pa.decimal128(9, 2), pa.decimal256(50, 2)], ids=str)
def test_a_text_is_no_other_number(tmp_path: Path, text: str, wanted: pa.DataType) -> None:
    with pytest.raises(FileError, match=rf"a\.csv:4: column 'n': '{text}' is no (float|decimal)"):
        csv(tmp_path, f't,n\n"a\nb", 1.5 \nc,{text}\n', n=wanted, t=pa.string())


def test_texts_that_are_infinite(tmp_path: Path) -> None:
    found = csv(tmp_path, "n,m\ninf,3.4e38\n-Infinity,\n", n=pa.float64(), m=pa.float32())
    assert found == {"n": [float("inf"), float("-inf")], "m": [pytest.approx(3.4e38), None]}
    with pytest.raises(FileError, match=r"a\.csv:2: column 'n': '3.5e38' is no float32"):
        csv(tmp_path, "n\n3.5e38\n", n=pa.float32())
    for wanted in (pa.float32(), pa.list_(pa.float32())):
        value = "[1, 3.5e38]" if pa.types.is_list(wanted) else "3.5e38"
        (tmp_path / "a.json").write_text(f'{{"n": {value}}}\n')
        with pytest.raises(FileError, match="column 'n': a number is too large for float"):
            read(tmp_path / "a.json", pa.schema([("n", wanted)]), "json", Rules())


@pytest.mark.parametrize(
    ("text", "wanted", "unit"),
    [
        ("1.005", pa.decimal128(9, 2), None),
        ("12345678", pa.decimal128(9, 2), None),
        ("2024-01-01", UTC, None),
        ("2024-01-01T00:00:00Z", pa.timestamp("us"), None),
        ("9223372036854775807", UTC, "s"),
        ("86400", pa.time32("s"), "s"),
    ],
)
def test_every_error_in_csv_has_its_line(tmp_path: Path, text: str, wanted: pa.DataType, unit: str | None) -> None:
    rules = Rules(units=(("n", unit),)) if unit else Rules()
    with pytest.raises(FileError, match=rf"a\.csv:4: .*column 'n'.*{text}"):
        csv(tmp_path, f't,n\n"a\nb",\nc,{text}\n', rules, n=wanted, t=pa.string())


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_duration_in_texts_counts_what_is_stated(tmp_path: Path, format_: str) -> None:
    wanted = pa.schema([("c", pa.duration("ms"))])
    assert UNIT in fits(None, wanted, {}, format_, Rules())[0]
    assert fits(None, wanted, {}, format_, Rules(units=(("c", "s"),))) == []


def test_counts_deep_inside_of_json(tmp_path: Path) -> None:
    wanted = pa.schema([("c", pa.list_(pa.struct([("at", UTC), ("span", pa.duration("ms"))])))])
    assert UNIT in fits(None, wanted, {}, "json", Rules())[0]
    (tmp_path / "a.json").write_text(f'{{"c": [{{"at": {SECONDS}, "span": 2}}]}}\n')
    (((found,),),) = read(tmp_path / "a.json", wanted, "json", Rules(units=(("c", "s"),))).to_pydict().values()
    assert (found["at"].timestamp(), found["span"].total_seconds()) == (SECONDS, 2)
