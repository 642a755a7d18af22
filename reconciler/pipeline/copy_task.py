"""What an executor does to move a table: copy one file, unless it is there.

A file appears under its name complete or not at all. One that is there with another size is nobody's that we know: that
is an answer, so that Spark repeats nothing in vain; what may pass (a store that does not answer) is raised, and Spark
tries again.

The module stands alone but for `table_task`: Spark carries both to executors by value.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from reconciler.pipeline import table_task

Unit = dict[str, Any]
"""key, path, of the file; source, target: uri and options of the datasets; anew: also what is there already."""
NATIVE_BYTES = 5 * 2**30
"""S3 itself copies what is not larger than this."""


def copy(unit: Unit) -> Iterator[Any]:
    """One answer, as JSON."""
    try:
        answer: dict[str, Any] = {"bytes": _copied(unit)}
    except _OtherFile as error:
        answer = {"error": str(error)}
    yield table_task._rows([json.dumps({"key": unit["key"], **answer})])


class _OtherFile(Exception):
    pass


def _copied(unit: Unit) -> int:
    """How many bytes; 0 for what was there."""
    source, target = unit["source"], unit["target"]
    if _local(source) and _local(target):
        return _on_disk(unit)
    store = _same_store(source, target)
    size = _in_store(unit, store) if store is not None else None
    return size if size is not None else _carried(unit)


def _local(side: dict[str, Any]) -> bool:
    return "://" not in side["uri"]


def _path(side: dict[str, Any], unit: Unit) -> str:
    return os.path.join(str(side["uri"]), *unit["path"].split("/"))


def _on_disk(unit: Unit) -> int:
    source, target = _path(unit["source"], unit), _path(unit["target"], unit)
    size = os.path.getsize(source)
    if os.path.exists(target) and not unit["anew"]:
        _need_size(target, os.path.getsize(target), size)
        return 0
    with _Beside(target) as temporary:
        shutil.copyfile(source, temporary)
    return size


def _in_store(unit: Unit, store: Any) -> int | None:
    """By the store itself: no byte comes through here. None for a file that is too large for that."""
    from pyarrow.fs import FileType

    source, target = (_key(unit[side]["uri"], unit["path"]) for side in ("source", "target"))
    found, there = store.get_file_info([source, target])
    if found.type != FileType.File:
        raise FileNotFoundError(f"there is no {unit['path']} in {unit['source']['uri']}")
    if there.type == FileType.File and not unit["anew"]:
        _need_size(target, there.size, found.size)
        return 0
    if found.size > NATIVE_BYTES:
        return None
    store.copy_file(source, target)
    return int(found.size)


def _carried(unit: Unit) -> int:
    """From one store to another, through a file here unless one of them is the disk."""
    from lance.file import LanceFileSession

    def opened(side: dict[str, Any]) -> Any:
        return None if _local(side) else LanceFileSession(side["uri"], side["options"] or None)

    source, target = opened(unit["source"]), opened(unit["target"])
    if target is None:
        path = _path(unit["target"], unit)
        if os.path.exists(path) and not unit["anew"]:
            return 0
        with _Beside(path) as temporary:
            source.download_file(unit["path"], temporary)
        return os.path.getsize(path)
    if not unit["anew"] and target.contains(unit["path"]):
        return 0
    if source is None:
        path = _path(unit["source"], unit)
        target.upload_file(path, unit["path"])
        return os.path.getsize(path)
    with tempfile.TemporaryDirectory(prefix="reconciler-copy-") as folder:
        path = os.path.join(folder, "file")
        source.download_file(unit["path"], path)
        target.upload_file(path, unit["path"])
        return os.path.getsize(path)


def _need_size(path: str, size: int, wanted: int) -> None:
    if size != wanted:
        raise _OtherFile(f"{path} is there with {size} bytes instead of {wanted}: it is left as it is")


def _same_store(source: dict[str, Any], target: dict[str, Any]) -> Any:
    """The S3 that both are in, where the options say all that it takes to open it; None for anything else."""
    options = {key.lower(): value for key, value in source["options"].items()}
    schemes = {side["uri"].partition("://")[0] for side in (source, target)}
    needed = ("aws_access_key_id", "aws_secret_access_key", "aws_region")
    if schemes != {"s3"} or source["options"] != target["options"] or any(k not in options for k in needed):
        return None
    from pyarrow.fs import S3FileSystem

    endpoint = urlsplit(options.get("aws_endpoint", ""))
    return S3FileSystem(
        access_key=options["aws_access_key_id"],
        secret_key=options["aws_secret_access_key"],
        session_token=options.get("aws_session_token"),
        region=options["aws_region"],
        scheme=endpoint.scheme or None,
        endpoint_override=endpoint.netloc or None,
    )


def _key(uri: str, path: str) -> str:
    bucket, _, folder = uri.partition("://")[2].partition("/")
    return "/".join(part for part in (bucket, unquote(folder).strip("/"), path) if part)


class _Beside:
    """A file that gets its name when it is complete."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._temporary = os.path.join(os.path.dirname(path), f".tmp-{uuid.uuid4().hex}")

    def __enter__(self) -> str:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        return self._temporary

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            os.replace(self._temporary, self._path)
        elif os.path.exists(self._temporary):
            os.unlink(self._temporary)
