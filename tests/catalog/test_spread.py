"""Several listings as one stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from reconciler.catalog.spread import spread


def _pages(start: int, count: int) -> Iterator[list[int]]:
    for page in range(count):
        yield [start + page * 2, start + page * 2 + 1]


def test_everything_comes_once() -> None:
    jobs = [lambda n=n: _pages(n * 1000, 50) for n in range(7)]
    assert sorted(spread(jobs, 3)) == [n * 1000 + i for n in range(7) for i in range(100)]
    assert list(spread([], 3)) == []


def test_a_failure_is_raised_and_ends_the_others() -> None:
    def failing() -> Iterator[list[int]]:
        yield [1]
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(spread([failing, lambda: _pages(0, 100_000)], 2))


def test_who_leaves_early_leaves_nobody_behind() -> None:
    before = set(threading.enumerate())
    stream = spread([lambda: _pages(0, 100_000) for _ in range(4)], 4)
    next(stream)
    started = set(threading.enumerate()) - before
    assert len(started) >= 4
    stream.close()
    assert not any(thread.is_alive() for thread in started if "(work)" in thread.name)


def test_a_slow_reader_holds_the_listings_back() -> None:
    made: list[int] = []

    def counting() -> Iterator[list[int]]:
        for page in range(10_000):
            made.append(page)
            yield [page]

    stream = spread([counting], 1)
    for _ in range(3):
        next(stream)
    assert len(made) < 100
    stream.close()
