"""The backends that must pass the contract. A new one joins by adding one entry to `BACKENDS`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract.outsider import Ident, Outsider
from reconciler.catalog.base import Catalog
from reconciler.catalog.memory import MemoryCatalog, place
from reconciler.catalog.registry import capabilities_of, connect
from reconciler.core.world import World
from reconciler.manifest.secrets import connection_options
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source

if TYPE_CHECKING:
    from contract.outsider_dir import Files


@dataclass
class Site:
    """One fresh place to keep a catalog in."""

    options: dict[str, Any]
    """Keys of the Catalog document's spec."""
    capabilities: Capabilities
    outsider: Outsider
    open: Callable[[], Catalog]
    """As a new process would."""
    copy: Callable[[], Site]


@dataclass(frozen=True)
class Backend:
    name: str
    make: Callable[[Path, Callable[[str], Any]], Site]
    """Gets a folder of its own and a way to ask for pytest fixtures."""
    home: Ident = ("n",)
    """Where the tests put their tables: a namespace, or the root."""
    slow: bool = False
    rows: bool = True
    """False where there is nothing but names and schemas."""
    stride: int = 1
    """Tests that stop after each step stop after every n-th only, where a step costs much."""


def memory_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    return _memory(World(locate=place))


def _memory(world: World) -> Site:
    from contract.outsider_memory import MemoryOutsider

    catalog = MemoryCatalog(world)

    def copy() -> Site:
        return _memory(World(world.snapshot(), place))

    options = {"type": "dir", "path": "./memory"}  # the manifest format has no word for it, and needs none
    return Site(options, catalog.capabilities, MemoryOutsider(world), lambda: catalog, copy)


@dataclass(frozen=True)
class LocalDir:
    layout: dict[str, str] = field(default_factory=dict)

    def __call__(self, folder: Path, fixture: Callable[[str], Any]) -> Site:
        from contract.outsider_dir import LocalFiles

        return dir_site(LocalFiles(folder / "lake"), self.layout)


@dataclass(frozen=True)
class BucketDir:
    layout: dict[str, str] = field(default_factory=dict)

    def __call__(self, folder: Path, fixture: Callable[[str], Any]) -> Site:
        import boto3

        from contract.outsider_dir import BucketFiles

        moto = fixture("moto")
        bucket = f"b{uuid.uuid4().hex[:12]}"
        moto.make_bucket(bucket)
        client = boto3.client(
            "s3",
            endpoint_url=moto.endpoint,
            aws_access_key_id=moto.storage_options["aws_access_key_id"],
            aws_secret_access_key=moto.storage_options["aws_secret_access_key"],
            region_name="us-east-1",
        )
        return dir_site(BucketFiles(client, bucket, "lake", moto.storage_options), self.layout)


def dir_site(files: Files, layout: dict[str, str]) -> Site:
    from contract.outsider_dir import DirOutsider

    switches = {k: v == "true" for k, v in layout.items()}
    storage = {f"storage.{k}": v for k, v in files.options.items()}
    options = {"type": "dir", "path": files.root, **switches, **storage}
    spec = CatalogSpec("lake", "dir", {k: v for k, v in options.items() if k != "type"}, Management(), Source("-"))
    capabilities = capabilities_of(spec)
    assert capabilities is not None

    def copy() -> Site:
        return dir_site(files.copy(f"copy-{uuid.uuid4().hex[:8]}"), layout)

    return Site(
        options,
        capabilities,
        DirOutsider(files, layout),
        lambda: connect(spec, connection_options(spec.options)[0]),
        copy,
    )


V1 = {"manifest_enabled": "false"}
V2 = {"dir_listing_enabled": "false"}

BACKENDS = [
    Backend("memory", memory_site, rows=False),
    Backend("dir-default", LocalDir()),
    Backend("dir-default-root", LocalDir(), home=()),
    Backend("dir-v2", LocalDir(V2)),
    Backend("dir-v1", LocalDir(V1), home=()),
    Backend("dir-s3", BucketDir(V2), slow=True, stride=7),
]
ROOT_OF_A_BUCKET = Backend("dir-default-s3", BucketDir(), home=(), slow=True)
"""Root tables of the default layout in a bucket: test_root_of_a_bucket.py runs the part of the contract they change."""
