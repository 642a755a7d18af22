"""Columns in another type where pylance refuses to cast them in place: under an index, and in a table without rows.

The new column is written beside the old one, under an id of its own, and one Merge commit shows it in the old one's
place. That commit drops the indexes on the old column, and nothing else does: a cast that fails leaves them. Lance
refuses the commit when anybody changed the rows meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.catalog.arrow_convert import from_arrow_schema, to_arrow_field, to_arrow_type
from reconciler.catalog.schema_protos import extended, replaced
from reconciler.core.casts import classify
from reconciler.core.fields import find
from reconciler.core.world import altered_fields
from reconciler.model.change import AlterColumns
from reconciler.model.errors import CatalogError, Code

_BATCH_BYTES = 32 * 2**20
_PARAMETRIC = {"timestamp": "Timestamp", "duration": "Duration", "time32": "Time32", "time64": "Time64"}
_NAMES = {
    "bool": "Boolean", "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint8": "UInt8",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "halffloat": "Float16", "float": "Float32",
    "double": "Float64", "string": "Utf8", "large_string": "LargeUtf8", "binary": "Binary",
    "large_binary": "LargeBinary", "date32[day]": "Date32", "date64[ms]": "Date64", "null": "Null",
}  # fmt: skip
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def merge_of_cast(dataset: Any, change: AlterColumns) -> Any:
    """The operation that shows the columns in their new types; their files are written. Raises CatalogError."""
    from lance import LanceOperation

    live, _ = from_arrow_schema(dataset.schema)
    old = {f.name: f for f in live}
    new = [f for f in altered_fields(live, change) if old[f.name] != f]
    names = temporary_names([f.name for f in new], old)
    if change.empty and dataset.count_rows() > 0:
        raise CatalogError(
            Code.INVALID_TABLE_STATE, f"{dataset.uri} had no rows when the plan was made, and has some now: plan again"
        )
    need_only(dataset, set(names.values()), change.loses)
    schema = pa.schema([to_arrow_field(f).with_name(name) for f, name in zip(new, names, strict=True)])
    whole = None
    fragments = []
    for fragment in dataset.get_fragments():
        done, whole = _merged(fragment, schema, None if change.empty else _scanned(dataset, fragment, names, schema))
        fragments.append(done)
    if whole is None:
        whole = extended(dataset.lance_schema, schema)
    return LanceOperation.Merge(fragments, replaced(whole, names))


def need_finite(dataset: Any, change: AlterColumns) -> None:
    """Casts of Lance make infinity of a number that is too large for the new type, and do not fail: all numbers are
    read first. Whoever adds rows meanwhile makes the commit fail. Raises CatalogError."""
    live, _ = from_arrow_schema(dataset.schema)
    narrow = {}
    for a in change.columns:
        found = find(live, a.path)
        if a.type is not None and (found is None or classify(found.type, a.type) != "widen"):
            narrow[a.path] = _number_type(to_arrow_type(a.type))
    narrow = {path: type_ for path, type_ in narrow.items() if pa.types.is_floating(type_)}
    if change.empty or not narrow:
        return
    names = sorted({path.partition(".")[0] for path in narrow})
    for batch in dataset.scanner(columns=names, batch_size_bytes=_BATCH_BYTES).to_batches():
        for path, type_ in narrow.items():
            numbers = _numbers(batch.column(path.partition(".")[0]), path.split(".")[1:])
            if (value := _too_large(numbers, type_)) is not None:
                raise CatalogError(
                    Code.TABLE_SCHEMA_VALIDATION_ERROR,
                    f"column {path} of {dataset.uri} has {value!r}, which is too large for {type_}: change that value "
                    "first, or keep a type that holds it",
                )


def _number_type(type_: Any) -> Any:
    types = pa.types
    if types.is_dictionary(type_):
        return type_.value_type
    lists = types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)
    return _number_type(type_.value_type) if lists else type_


def _numbers(values: Any, path: list[str]) -> Any:
    """Those of all rows, of the field inside structs and lists of structs."""
    for name in path:
        if pa.types.is_struct(values.type):
            values = values.flatten()[values.type.get_field_index(name)]
        else:
            values = values.flatten()
    while not pa.types.is_dictionary(values.type) and pa.types.is_nested(values.type):
        values = values.flatten()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _too_large(numbers: Any, type_: Any) -> float | None:
    """The first. Halves are made by way of float32, as Lance does where the processor can: that rounds up some."""
    single = numbers.cast(pa.float32(), safe=False)
    made = single.cast(type_).cast(pa.float64())
    lost = pc.and_(pc.is_inf(made), pc.is_finite(numbers.cast(pa.float64(), safe=False)))
    return numbers.filter(lost)[0].as_py() if pc.any(lost).as_py() else None


def _scanned(dataset: Any, fragment: Any, names: Mapping[str, str], schema: Any) -> Any:
    """As pylance casts: by the same kernels, which fail on a value that does not fit."""
    columns = {new: cast_sql("arrow_cast", old, schema.field(new).type) for new, old in names.items()}
    return dataset.scanner(columns=columns, fragments=[fragment], batch_size_bytes=_BATCH_BYTES)


def _merged(fragment: Any, schema: Any, scanner: Any) -> Any:
    """lance wraps what a reader raises: the reason is kept aside."""
    reasons: list[Exception] = []

    def batches() -> Iterator[Any]:
        try:
            for batch in scanner.to_batches() if scanner is not None else ():
                columns = [batch.column(field.name) for field in schema]
                # A struct is cast by the names of its fields: one that is not found would be null.
                if wrong := [f.name for f, c in zip(schema, columns, strict=True) if not c.type.equals(f.type)]:
                    raise CatalogError(Code.INTERNAL, f"the cast gave another type than asked for: {wrong[0]}")
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except Exception as error:
            reasons.append(error)
            raise

    try:
        return fragment.merge_columns(pa.RecordBatchReader.from_batches(schema, batches()))
    except Exception as error:
        raise (reasons[0] if reasons else error) from error


def temporary_names(columns: list[str], taken: Mapping[str, object]) -> dict[str, str]:
    """Free names for the new columns while the old ones are still there -> the names they get."""
    finals: dict[str, str] = {}
    for column in columns:
        name = f"__new_{column}"
        while name in taken:
            name = f"_{name}"
        finals[name] = column
    return finals


def need_only(dataset: Any, columns: set[str], expected: tuple[str, ...]) -> None:
    """Lance drops every index on a column that is written anew, and says nothing. One that the plan does not know of
    is somebody else's."""
    from reconciler.catalog.lance_write import field_ids

    ids = {i for path, several in field_ids(dataset).items() if path.partition(".")[0] in columns for i in several}
    held = [index.name for index in dataset.describe_indices() if ids.intersection(index.fields)] if ids else []
    if unknown := [name for name in held if name not in expected]:
        raise CatalogError(
            Code.INVALID_TABLE_STATE,
            f"{dataset.uri} has the index {', '.join(unknown)} on a column that is to be written anew, and the plan "
            "does not know of it: make a new plan",
        )


def cast_sql(function: str, path: str, type_: Any) -> str:
    """`arrow_cast` of a column, or `arrow_try_cast`, which gives null for a value that does not fit."""
    quoted = ".".join(f"`{part}`" for part in path.split("."))
    return f"{function}({quoted}, {_quoted(sql_type(type_))})"


def sql_type(type_: Any) -> str:
    """An Arrow type as `arrow_cast` reads it."""
    types = pa.types
    if types.is_dictionary(type_):
        return f"Dictionary({sql_type(type_.index_type)}, {sql_type(type_.value_type)})"
    if types.is_struct(type_):
        return f"Struct({', '.join(_item(type_.field(n), True) for n in range(type_.num_fields))})"
    if types.is_fixed_size_list(type_):
        return f"FixedSizeList({type_.list_size} x {_item(type_.value_field)})"
    if types.is_list(type_) or types.is_large_list(type_):
        return f"{'Large' if types.is_large_list(type_) else ''}List({_item(type_.value_field)})"
    if types.is_decimal(type_):
        return f"Decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if types.is_fixed_size_binary(type_):
        return f"FixedSizeBinary({type_.byte_width})"
    if types.is_timestamp(type_):
        zone = f'Some("{type_.tz}")' if type_.tz else "None"
        return f"Timestamp({_UNITS[type_.unit]}, {zone})"
    if types.is_duration(type_) or types.is_time(type_):
        return f"{_PARAMETRIC[str(type_).partition('[')[0]]}({_UNITS[type_.unit]})"
    return _NAMES[str(type_)]


def _item(field: Any, named: bool = False) -> str:
    if named and ('"' in field.name or "\\" in field.name):
        raise CatalogError(
            Code.UNSUPPORTED, f"the name {field.name!r} of a nested field has a quote or a backslash: rename it first"
        )
    name = f'"{field.name}": ' if named else ""
    return f"{name}{'' if field.nullable else 'non-null '}{sql_type(field.type)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
