"""Several listings at a time, as one stream: pages come as they arrive, and only a few of them wait."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_WAITING_PAGES = 32


def spread(jobs: Sequence[Callable[[], Iterator[list[T]]]], threads: int) -> Iterator[T]:
    """What all the jobs yield, in no particular order. An exception of a job is raised here and ends the others; so
    does leaving the stream early."""
    todo = iter(jobs)
    lock, stop = threading.Lock(), threading.Event()
    pages: queue.Queue[list[T] | BaseException | None] = queue.Queue(_WAITING_PAGES)

    def put(item: list[T] | BaseException | None) -> None:
        while not stop.is_set():
            try:
                pages.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def next_job() -> Callable[[], Iterator[list[T]]] | None:
        with lock:
            return None if stop.is_set() else next(todo, None)

    def work() -> None:
        try:
            while (job := next_job()) is not None:
                for page in job():
                    put(page)
                    if stop.is_set():
                        return
            put(None)
        except BaseException as error:
            put(error)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(threads, len(jobs)))]
    for worker in workers:
        worker.start()
    try:
        running = len(workers)
        while running:
            item = pages.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield from item
    finally:
        stop.set()
        for worker in workers:
            worker.join()
