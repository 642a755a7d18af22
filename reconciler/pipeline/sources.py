from __future__ import annotations
import glob, os, hashlib
from dataclasses import dataclass
from typing import Any
import pyarrow as pa
from reconciler.pipeline import file_reader


class SourceError(ValueError):
    pass


@dataclass(frozen=True)
class SourceFile:
    uri: str
    size: int
    stamp: str


@dataclass(frozen=True)
class Listing:
    files: tuple[SourceFile, ...]
    digest: str


def list_source(source, storage):
    if source["format"] == "lance":
        import lance

        ds = lance.dataset(source["path"])
        return Listing((SourceFile(source["path"], 0, str(ds.version)),), f"{source['path']}@{ds.version}")
    if source["format"] == "sql":
        return Listing(
            (), source["sql"] + "".join(list_source(v, storage).digest for v in source.get("views", {}).values())
        )
    p = source["path"]
    names = sorted(
        os.path.abspath(f)
        for f in (glob.glob(p + "/**", recursive=True) if os.path.isdir(p) else glob.glob(p))
        if os.path.isfile(f)
    )
    if not names:
        raise SourceError("no file")
    fs = tuple(SourceFile(n, os.stat(n).st_size, str(os.stat(n).st_mtime_ns)) for n in names)
    return Listing(fs, hashlib.sha256(repr(fs).encode()).hexdigest())


def source_schema(listing, source):
    if source["format"] == "lance":
        import lance

        return lance.dataset(listing.files[0].uri).schema
    f = listing.files[0]
    return file_reader.schema_of(f.uri, source["format"], source, None, f.size)


def fits(found, target, columns):
    return []
