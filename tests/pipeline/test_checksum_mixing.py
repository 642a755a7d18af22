"""No two rows have one hash: values that are permuted, exchanged, or in step with each other, in large numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reconciler.pipeline import checksum

U64 = np.uint64
STEPS = [1, 2, 3, 7, 10, 256, 1000, 1 << 16, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 48, 0x9E3779B97F4A7C15]
"""The last is that of the keys of positions themselves."""


def hashes(*columns: Any) -> np.ndarray[Any, Any]:
    """Of shape (2, rows)."""
    names = [f"c{n}" for n in range(len(columns))]
    return checksum.row_hashes(pa.RecordBatch.from_arrays([pa.array(c) for c in columns], names))


def vectors(items: np.ndarray[Any, Any]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(items.reshape(-1)), items.shape[1])


def need_distinct(found: np.ndarray[Any, Any]) -> int:
    """Each half by itself has 64 bits, which are enough for what is tried here. How many tries they were."""
    for half in found:
        ordered = np.sort(half)
        assert not (ordered[1:] == ordered[:-1]).any()
    return int(found.shape[1])


def distinct_rows(items: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.unique(items, axis=0)


def permuted(tries: int, dice: np.random.Generator) -> int:
    """Every order of eight numbers."""
    orders = np.array(list(itertools.permutations(range(8))))
    done = 0
    for kind in itertools.cycle(("f4", "f8", "i2", "u1", "i8")):
        if done >= tries:
            return done
        numbers = dice.choice(np.arange(1, 120), 8, replace=False).astype(kind)
        done += need_distinct(hashes(vectors(numbers[orders[: tries - done]])))
    raise AssertionError


def exchanged(tries: int, dice: np.random.Generator) -> int:
    """Two cells of a column that change places between two rows: the sum over the rows is another one."""
    values = [dice.integers(0, 1000, tries) * step for step in (1, 7)] + [dice.integers(0, 1000, tries) for _ in "ab"]
    a, b, c, d = values[0], values[1], values[0] + 1 + values[2], values[1] + 1 + values[3]
    before = hashes(a, b) + hashes(c, d)
    after = hashes(a, d) + hashes(c, b)
    assert not (before == after).any()
    return tries


def in_step(tries: int, dice: np.random.Generator) -> int:
    """Rows of one column: a and a + 3d, or a + d and a + 2d. In floats too."""
    done = 0
    for step, kind in itertools.product(STEPS, ("u8", "f8")):
        start = dice.integers(0, 2**40, tries // (2 * len(STEPS)) + 1).astype(U64)
        numbers = [(start + U64(step * n % 2**64)).astype(kind) for n in range(4)]
        one, two, three, four = (hashes(n) for n in numbers)
        distinct = (numbers[0] != numbers[1]) & (numbers[0] != numbers[2])
        assert not ((one + four) == (two + three))[:, distinct].any()
        done += int(distinct.sum())
    return done


def sums_alike(tries: int, dice: np.random.Generator) -> int:
    """Vectors whose items add up to the same: one grows by what the other loses."""
    done = 0
    for kind, step in itertools.product(("i8", "u8", "f8", "f4"), STEPS[:8]):
        count = min(tries // 32 + 1, 2**16)
        grown = (np.arange(count) * step).astype("i8")
        items = np.stack([1000 + grown, 5_000_000 - grown, np.full(count, 3), grown], axis=1).astype(kind)
        done += need_distinct(hashes(vectors(distinct_rows(items))))
    while done < tries:
        items = dice.integers(0, 64, (min(tries - done, 10**6) + 1, 8))
        items[:, 7] = 448 - items[:, :7].sum(axis=1)
        done += need_distinct(hashes(vectors(distinct_rows(items.astype("f4")))))
    return done


def texts(tries: int, dice: np.random.Generator) -> int:
    """Times, hexadecimal keys and decimal ones of several words, as dense as they come."""
    seconds = np.datetime64("2024-01-01T00:00:00") + np.arange(tries // 3 + 1) * np.timedelta64(61, "s")
    done = need_distinct(hashes(np.datetime_as_string(seconds)))
    side = int((tries // 3) ** 0.5) + 1
    hexadecimal = np.array([f"{n:08x}" for n in range(side)])
    done += need_distinct(hashes(np.char.add(hexadecimal[:, None], hexadecimal[None]).reshape(-1)))
    digits = np.array([f"{n * 37:07d}-" for n in range(side)])
    whole = np.char.add(np.char.add(digits[:, None], hexadecimal[None]), digits[:, None]).reshape(-1)
    return done + need_distinct(hashes(whole))


def columns(tries: int, dice: np.random.Generator) -> int:
    """The cells of a row change columns, and keep their sum."""
    items = distinct_rows(dice.integers(0, 200, (tries + 1, 4)))
    items[:, 3] = 1000 - items[:, :3].sum(axis=1)
    return need_distinct(hashes(*distinct_rows(items).T)) if tries else 0


FAMILIES = [permuted, exchanged, in_step, sums_alike, texts, columns]
Family = Callable[[int, np.random.Generator], int]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_values_that_resemble_each_other(family: Family) -> None:
    assert family(50_000, np.random.default_rng(7)) >= 40_000


@pytest.mark.slow
def test_ten_million_values_that_resemble_each_other() -> None:
    assert sum(family(1_800_000, np.random.default_rng(11)) for family in FAMILIES) >= 10**7


def meeting(values: np.ndarray[Any, Any]) -> int:
    """How often 32 bits meet."""
    ordered = np.sort(values.astype(np.uint32))
    return int((ordered[1:] == ordered[:-1]).sum())


COUNT = 2**20
EXPECTED = COUNT**2 / 2**33
"""Pairs of them that meet in 32 bits: 128. In 64 bits it is one in 30 million."""
NUMBERS: dict[str, Callable[[], Any]] = {
    "integers": lambda: np.arange(COUNT),
    "multiples": lambda: np.arange(COUNT, dtype=U64) << U64(40),
    "floats": lambda: np.arange(COUNT).astype("f8"),
    "pairs": lambda: vectors(np.stack(np.divmod(np.arange(COUNT), 1024), axis=1).astype("f4")),
    "halves": lambda: vectors(np.stack(np.divmod(np.arange(COUNT), 1024), axis=1).astype("f8")),
    "texts": lambda: np.char.add("2024-", np.arange(COUNT).astype(str)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_as_many_meet_as_by_chance(name: str) -> None:
    """No lane has a part that tells less than its bits can, and the lanes have nothing to do with each other."""
    found = hashes(NUMBERS[name]())
    need_distinct(found)
    met = [meeting(part >> U64(shift)) for part in (*found, found[0] ^ found[1]) for shift in (0, 32)]
    assert all(EXPECTED / 2 < count < EXPECTED * 2 for count in met), met


def table(values: list[Any], type_: pa.DataType) -> tuple[int, ...]:
    batch = pa.RecordBatch.from_arrays([pa.array(values, type_)], ["c"])
    return checksum.add_rows((0, 0), batch)


@pytest.mark.parametrize(
    ("one", "other", "type_"),
    [
        ([[6, 21, 14, 27]], [[6, 27, 14, 21]], pa.list_(pa.float32(), 4)),
        ([[6, 21, 14, 27]], [[6, 27, 14, 21]], pa.list_(pa.float32())),
        ([[4, 208]], [[32, 26]], pa.list_(pa.float64(), 2)),
        ([[4, 208]], [[32, 26]], pa.list_(pa.float64())),
        (["2024-02-14T04:55:05"], ["2024-07-14T04:05:05"], pa.string()),
        ([b"2024-02-14T04:55:05"], [b"2024-07-14T04:05:05"], pa.binary(19)),
    ],
)
def test_everyday_values_that_are_not_the_same(one: list[Any], other: list[Any], type_: pa.DataType) -> None:
    assert all(x != y for x, y in zip(table(one, type_), table(other, type_), strict=True)), "in both lanes"


def test_keys_of_two_numbers() -> None:
    keys = [f"{a:08x}{b:08x}" for a in range(300) for b in range(300)]
    assert need_distinct(hashes(keys)) == 90_000


def test_the_mixer_is_that_of_splitmix64() -> None:
    """Its published first outputs for the seed 1234567."""
    state = np.array([1234567 + n * 0x9E3779B97F4A7C15 for n in range(1, 4)], object) % 2**64
    mixed = checksum._mixed(state.astype(U64))
    assert mixed.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
