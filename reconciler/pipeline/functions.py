"""Python functions that give the values of new columns: `fn(batch: pyarrow.RecordBatch) -> pyarrow.Array`.

A package registers them as entry points of the group `reconciler.functions`. The function is loaded here and carried to
the executors by value with its module; what that module imports must be installed there. It is given all columns of the
table, or those that its attribute `columns` names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

from reconciler.model.data import FUNCTIONS as GROUP
from reconciler.model.errors import CatalogError, Code


def load_function(name: str) -> Callable[[Any], Any]:
    """Raises CatalogError."""
    found = entry_points(group=GROUP)
    matching = {point.value: point for point in found if point.name == name}
    if len(matching) != 1:
        known = ", ".join(sorted({point.name for point in found})) or "none"
        why = f"registered by more than one package: {', '.join(sorted(matching))}" if matching else "not registered"
        raise CatalogError(
            Code.INVALID_INPUT,
            f"the function {name!r} is {why}; install a package with one entry point of that name in the group {GROUP} "
            f"(registered here: {known})",
        )
    try:
        function = next(iter(matching.values())).load()
    except Exception as error:
        raise CatalogError(Code.INVALID_INPUT, f"the function {name!r} cannot be loaded: {error}") from error
    if not callable(function):
        raise CatalogError(Code.INVALID_INPUT, f"the entry point {name!r} of the group {GROUP} is no function")
    return function  # type: ignore[no-any-return]


def columns_given(name: str, function: Callable[[Any], Any], there: Sequence[str]) -> list[str]:
    """Raises CatalogError when it asks for a column that the table has not."""
    wanted = list(getattr(function, "columns", there))
    lacking = [column for column in wanted if column not in there]
    if lacking:
        message = f"the function {name!r} reads the columns {', '.join(lacking)}, which the table does not have"
        raise CatalogError(Code.TABLE_COLUMN_NOT_FOUND, message)
    return wanted


def carry(function: Callable[[Any], Any]) -> None:
    """From now on its module goes to executors by value."""
    from pyspark import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", ""))
    if module is not None:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
