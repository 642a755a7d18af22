"""Work for executors: few fat tasks with threads inside, some jobs under way at a time.

A task is told what to do in the function that Spark carries there, storage options included: they are in no plan, no
log and no user interface. Our task modules travel by value, so that executors need pylance and nothing of ours: the
module of `work` stands alone, but for `table_task`, `checksum`, `file_reader` and `conform`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from reconciler.pipeline import checksum, column_casts, conform, csv_text, file_reader, sql_overflow, table_task
from reconciler.pipeline.session import GaveUp, SparkError, first_line
from reconciler.pipeline.table_task import Unit

TASKS_PER_CORE = 4
UNITS_PER_TASK = 100
MOST_MET = 100_000
"""Hashes that executors are told to look for; where more of them meet, they give the keys of all rows."""
JOBS_AT_A_TIME = 2
"""While the last tasks of one job run, the cores that are free work on the next."""
TICK = 0.5
Work = Callable[[Unit], Iterator[Any]]
Stopped = Callable[[], bool]


def cores(spark: Any) -> int:
    """As many as Spark would use by default; asked in a way that Spark Connect knows too."""
    numbers = spark.range(0, 65_536).selectExpr("spark_partition_id() AS number").distinct()
    return max(1, int(done(numbers.count)))


def answers(
    spark: Any,
    units: Sequence[Unit],
    slots: int,
    work: Work,
    per_task: int = UNITS_PER_TASK,
    stopped: Stopped = lambda: False,
) -> Iterator[dict[str, Any]]:
    """As they come, job by job: with large units few of them make a job. Raises SparkError."""
    jobs = packed(units, slots, per_task)
    yield from finished([partial(_collected, spark, tasks, work) for tasks in jobs], stopped)


def answers_here(units: Sequence[Unit], work: Work, stopped: Stopped = lambda: False) -> Iterator[dict[str, Any]]:
    """The same work in threads of this process: for tables that are not worth a JVM. Raises SparkError."""
    yield from finished([partial(_worked, unit, work) for unit in units], stopped)


def _worked(unit: Unit, work: Work) -> list[Any]:
    return [(text,) for batch in work(unit) for text in batch.column("answer").to_pylist()]


def finished(jobs: Sequence[Callable[[], list[Any]]], stopped: Stopped) -> Iterator[dict[str, Any]]:
    """The answers of jobs, some of them at a time. A run that is to stop waits for none: what they do is not committed,
    and they end with the session. Raises SparkError."""
    pool = ThreadPoolExecutor(JOBS_AT_A_TIME, thread_name_prefix="spark-job")
    try:
        waiting: set[Future[list[Any]]] = {pool.submit(job) for job in jobs}
        while waiting:
            ended, waiting = wait(waiting, TICK, FIRST_COMPLETED)
            for future in ended:
                for row in future.result():
                    yield checked(json.loads(row[0]))
            if waiting and stopped():
                raise GaveUp("the run is to stop: nothing of this step was committed")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    """Raises SparkError when the executor could not even begin."""
    if "missing" in answer:
        raise SparkError(
            f"the executors have no pylance ({answer['missing']}): install it in their Python, or name a Python that "
            "has it with --conf spark.pyspark.python=PATH"
        )
    return answer


def packed(units: Sequence[Unit], slots: int, per_task: int = UNITS_PER_TASK) -> Iterator[list[list[Unit]]]:
    """Jobs of at most TASKS_PER_CORE tasks for each core; no task has more than `per_task` units. Neighbours go to
    different tasks: what is large stands together."""
    most = slots * TASKS_PER_CORE
    for start in range(0, len(units), most * per_task):
        some = units[start : start + most * per_task]
        count = min(len(some), most)
        yield [list(some[number::count]) for number in range(count)]


def repeated_keys(spark: Any, units: Sequence[Unit], slots: int) -> int:
    """Over all fragments of a table: how many rows have a key that another one has already. By hashes first; where they
    meet, the keys themselves are counted."""
    (tasks,) = packed(units, max(slots, -(-len(units) // (TASKS_PER_CORE * UNITS_PER_TASK))))
    hashes = _frame(spark, tasks, table_task.keys, "hash long")
    groups = hashes.groupBy("hash").count().where("count > 1").select("hash").limit(MOST_MET + 1)
    found = [row[0] for row in done(groups.collect)]
    if not found:
        return 0
    met = np.sort(np.array(found, np.int64).view(np.uint64)) if len(found) <= MOST_MET else None
    again = [[{**unit, "met": met} for unit in task] for task in tasks]
    keys = _frame(spark, again, table_task.key_values, "key binary, rows long").groupBy("key").sum("rows")
    return int(done(lambda: keys.selectExpr("sum(`sum(rows)` - 1)").first()[0]))


def _collected(spark: Any, tasks: Sequence[Sequence[Unit]], work: Work) -> list[Any]:
    return list(done(_frame(spark, tasks, work, "answer string").collect))


def _frame(spark: Any, tasks: Sequence[Sequence[Unit]], work: Work, schema: str) -> Any:
    carried_by_value(sys.modules[work.__module__])
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(table_task.job(tasks, work), schema)


def carried_by_value(*modules: ModuleType) -> None:
    from pyspark import cloudpickle

    for module in (checksum, column_casts, conform, csv_text, file_reader, sql_overflow, table_task, *modules):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def done(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        raise SparkError(f"a Spark job failed: {first_line(error)}") from error
