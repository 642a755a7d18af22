"""Plain pylance on a folder or a bucket. Writes go through DirectoryNamespace; reads open `__manifest` and datasets,
because DirectoryNamespace 14 does not show the properties of root tables and cannot list below a name with a quote."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote

import lance
import lance_namespace as ln
import pyarrow as pa
from lance.namespace import DirectoryNamespace
from servers.moto import Moto

from contract.outsider import OWNER, Changes, Ident, TableView, View, change_config, changed, users, with_dataset


class Files(Protocol):
    root: str
    options: dict[str, str]

    def uri(self, path: str) -> str: ...

    def all(self) -> dict[str, str]:
        """Path -> digest of the content."""

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None: ...

    def remove(self, folder: str) -> None: ...

    def copy(self, name: str) -> Files:
        """Everything, at a new root beside this one."""


class LocalFiles:
    def __init__(self, root: Path) -> None:
        self.path, self.root, self.options = root, str(root), {}

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}"

    def all(self) -> dict[str, str]:
        found = {}
        for folder, _, names in os.walk(self.path):
            for name in names:
                file = Path(folder, name)
                found[str(file.relative_to(self.path))] = hashlib.md5(file.read_bytes()).hexdigest()
        return found

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(data)

    def remove(self, folder: str) -> None:
        shutil.rmtree(self.path / folder)

    def copy(self, name: str) -> LocalFiles:
        target = self.path.parent / name
        if self.path.exists():
            shutil.copytree(self.path, target)
        return LocalFiles(target)


class BucketFiles:
    """A folder in a bucket of its own: the server walks the whole bucket for every listing."""

    def __init__(self, moto: Moto, bucket: str) -> None:
        moto.make_bucket(bucket)
        self.moto, self.client, self.bucket, self.prefix = moto, moto.client, bucket, "lake"
        self.options = moto.storage_options
        self.root = f"s3://{bucket}/{self.prefix}"

    def uri(self, path: str) -> str:
        return f"{self.root}/{quote(path, safe='/$')}"

    def all(self) -> dict[str, str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"{self.prefix}/")
        skip = len(self.prefix) + 1
        return {o["Key"][skip:]: o["ETag"] for page in pages for o in page.get("Contents", ())}

    def read(self, path: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=self.bucket, Key=f"{self.prefix}/{path}")["Body"].read()
        return data

    def write(self, path: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=f"{self.prefix}/{path}", Body=data)

    def remove(self, folder: str) -> None:
        for path in self.all():
            if path.startswith(f"{folder}/"):
                self.client.delete_object(Bucket=self.bucket, Key=f"{self.prefix}/{path}")

    def copy(self, name: str) -> BucketFiles:
        target = BucketFiles(self.moto, name)
        for path in self.all():
            key = f"{self.prefix}/{path}"
            self.client.copy_object(Bucket=name, Key=key, CopySource={"Bucket": self.bucket, "Key": key})
        return target


class DirOutsider:
    holds_rows = True

    def __init__(self, files: Files, layout: Mapping[str, str]) -> None:
        self.files = files
        self.manifest = layout.get("manifest_enabled", "true") == "true"
        self.listing = layout.get("dir_listing_enabled", "true") == "true"
        storage = {f"storage.{k}": v for k, v in files.options.items()}
        self.client = DirectoryNamespace(root=files.root, **layout, **storage)
        self._folders: dict[Ident, str] = {}

    # writes

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        self.client.create_namespace(ln.CreateNamespaceRequest(id=list(ident), properties=dict(properties or {})))

    def create_table(self, ident: Ident, schema: pa.Schema, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(pa.Table.from_pylist([dict(r) for r in rows], schema=schema))
            if not rows:
                writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        self.client.create_table(ln.CreateTableRequest(id=list(ident)), sink.getvalue())

    def declare_table(self, ident: Ident) -> None:
        self.client.declare_table(ln.DeclareTableRequest(id=list(ident)))

    def append(self, ident: Ident, rows: Sequence[Mapping[str, Any]]) -> None:
        dataset = self.open(ident)
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=dataset.schema)
        lance.write_dataset(table, self._uri(ident), mode="append", storage_options=self.files.options or None)

    def set_config(self, ident: Ident, values: Changes) -> None:
        change_config(self.open(ident), values)

    def mark_data(self, ident: Ident, owner: str) -> None:
        self.open(ident).update_metadata({"reconciler.owner": owner})

    def move(self, ident: Ident, other: Ident) -> None:
        """A root table is its folder: that becomes a link, as somebody does who moves data to another disk."""
        if self.listing and len(ident) == 1:
            assert isinstance(self.files, LocalFiles)
            folder = self.files.path / self.folder(ident)
            folder.rename(self.files.path / f"was-{folder.name}.old")
            folder.symlink_to(self.files.path / self.folder(other))
            return
        manifest = self._manifest()
        (row,) = [r for r in manifest.to_table().to_pylist() if r["object_id"] == "$".join(ident)]
        table = pa.Table.from_pylist([{**row, "location": self.folder(other)}], schema=manifest.schema)
        manifest.merge_insert("object_id").when_matched_update_all().execute(table)

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        manifest = self._manifest()
        rows = manifest.to_table().to_pylist()
        (row,) = [r for r in rows if r["object_id"] == "$".join(ident)]
        row["metadata"] = json.dumps(changed(json.loads(row["metadata"] or "{}"), values))
        table = pa.Table.from_pylist([row], schema=manifest.schema)
        manifest.merge_insert("object_id").when_matched_update_all().execute(table)

    def lose(self, ident: Ident) -> None:
        self.files.remove(self.folder(ident))

    def spoil(self, ident: Ident) -> None:
        folder = self.folder(ident)
        for path in self.files.all():
            if path.startswith(f"{folder}/_versions/"):
                self.files.write(path, b"spoiled")

    # reads

    def open(self, ident: Ident, version: str | None = None) -> Any:
        options = self.files.options or None
        return lance.dataset(self._uri(ident), version=version, storage_options=options)

    def tagged(self, ident: Ident, tag: str) -> TableView:
        return with_dataset(TableView({}, None), self.open(ident, tag))

    def data_of(self, ident: Ident) -> object:
        folder = self.folder(ident)
        markers = (".lance-deregistered", ".lance-reserved")
        found = {p: d for p, d in self.files.all().items() if p.startswith(f"{folder}/") and not p.endswith(markers)}
        return folder, {p: d for p, d in found.items() if "/_refs/tags/" not in p}

    def folder(self, ident: Ident) -> str:
        row = self._rows().get(ident)
        if row is not None:
            self._folders[ident] = row["location"]
        elif len(ident) == 1 and self.listing:
            self._folders[ident] = f"{ident[0]}.lance"
        return self._folders[ident]

    def state(self) -> View:
        rows = self._rows()
        files = self.files.all()
        namespaces = {i: _metadata(r) for i, r in rows.items() if r["object_type"] == "namespace"}
        tables = {i: self._view(i, r["location"], r, files) for i, r in rows.items() if self._is_row_table(i, r)}
        if self.listing:
            taken = {r["location"] for i, r in rows.items() if len(i) > 1}
            folders = {p.split("/")[0] for p in files if ".lance/" in p}
            hidden = {p.split("/")[0] for p in files if p.endswith("/.lance-deregistered")}
            for folder in sorted(folders - hidden - taken):
                if folder.endswith(".lance"):
                    ident = (folder.removesuffix(".lance"),)
                    tables[ident] = self._view(ident, folder, rows.get(ident), files)
        return View(namespaces, dict(sorted(tables.items())))

    def raw(self) -> object:
        return self.files.all()

    def raw_of(self, ident: Ident) -> object:
        row = self._rows().get(ident)
        if row is not None and row["object_type"] == "namespace":
            return row, None
        folder = self.folder(ident)
        return row, {p: d for p, d in self.files.all().items() if p.startswith(f"{folder}/")}

    def listed(self, ident: Ident = ()) -> tuple[set[Ident], set[Ident]]:
        """Namespaces and tables below, as DirectoryNamespace lists them."""
        names = (
            self.client.list_namespaces(ln.ListNamespacesRequest(id=list(ident))).namespaces if self.manifest else []
        )
        tables = self.client.list_tables(ln.ListTablesRequest(id=list(ident))).tables
        found = {(*ident, n) for n in names}, {(*ident, t) for t in tables}
        for name in names:
            below = self.listed((*ident, name))
            found = found[0] | below[0], found[1] | below[1]
        return found

    def _is_row_table(self, ident: Ident, row: Mapping[str, Any]) -> bool:
        return row["object_type"] == "table" and not (self.listing and len(ident) == 1)

    def _manifest(self) -> Any:
        return lance.dataset(self.files.uri("__manifest"), storage_options=self.files.options or None)

    def _rows(self) -> dict[Ident, dict[str, Any]]:
        if not self.manifest:
            return {}
        try:
            rows = self._manifest().to_table().to_pylist()
        except ValueError as error:
            if "was not found" not in str(error):
                raise
            return {}
        return {tuple(r["object_id"].split("$")): r for r in rows}

    def _uri(self, ident: Ident) -> str:
        return self.files.uri(self.folder(ident))

    def _view(self, ident: Ident, folder: str, row: Mapping[str, Any] | None, files: Mapping[str, str]) -> TableView:
        properties = _metadata(row) if row is not None else {}
        owner = self._recorded_owner(ident, files) if self.listing and len(ident) == 1 else properties.get(OWNER)
        view = TableView(users(properties), owner)
        if not any(p.startswith(f"{folder}/_versions/") for p in files):
            return view
        dataset = lance.dataset(self.files.uri(folder), storage_options=self.files.options or None)
        return with_dataset(view, dataset)

    def _recorded_owner(self, ident: Ident, files: Mapping[str, str]) -> str | None:
        folder = "__reconciler/tables/"
        for path in files:
            if path.startswith(folder) and unquote(path[len(folder) :]) == f"{ident[0]}.json":
                owner: str | None = json.loads(self.files.read(path))["owner"]
                return owner
        return None


def _metadata(row: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = json.loads(row["metadata"] or "{}")
    return found
