"""The backends that must pass the contract. A new one joins by adding one entry to `BACKENDS`; for a catalog service
outsider_rest.py says how."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
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
    """Everything in here, in a new place."""
    container: Ident = ()
    """What every identifier starts with: the warehouse, the Unity catalog. It exists and cannot be declared."""


@dataclass(frozen=True)
class Backend:
    name: str
    make: Callable[[Path, Callable[[str], Any]], Site]
    """Gets a folder of its own and a way to ask for pytest fixtures."""
    home: Ident = ("n",)
    """Where the tests put their tables, below the container: a namespace, or the root."""
    slow: bool = False
    """Left out of the run that answers in a minute."""
    rows: bool = True
    """False where there is nothing but names and schemas."""
    listings: int = 2
    """The most calls to the service (to the storage, for a directory) that a look at one namespace takes."""
    loads: int = 0
    """And the calls for each table, where the protocol forces one."""
    strangers: bool = False
    """The service holds other things than Lance tables, and its outsider can make one (`foreign_table`)."""


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
        from contract.outsider_dir import BucketFiles

        return dir_site(BucketFiles(fixture("moto"), f"b-{uuid.uuid4().hex[:12]}"), self.layout)


def dir_site(files: Files, layout: dict[str, str]) -> Site:
    from contract.outsider_dir import DirOutsider

    switches = {k: v == "true" for k, v in layout.items()}
    storage = {f"storage.{k}": v for k, v in files.options.items()}
    options = {"type": "dir", "path": files.root, **switches, **storage}

    def copy() -> Site:
        return dir_site(files.copy(f"copy-{uuid.uuid4().hex[:8]}"), layout)

    return service_site(options, DirOutsider(files, layout), copy)


def service_site(options: dict[str, Any], outsider: Outsider, copy: Callable[[], Site], container: Ident = ()) -> Site:
    """`options` are the spec of the Catalog document, `type` included; all else follows from them."""
    rest = {k: v for k, v in options.items() if k != "type"}
    spec = CatalogSpec("lake", options["type"], rest, Management(), Source("-"))
    capabilities = capabilities_of(spec)
    assert capabilities is not None
    return Site(
        options, capabilities, outsider, lambda: connect(spec, connection_options(spec.options)[0]), copy, container
    )


@dataclass(frozen=True)
class Service:
    """A catalog service whose site is made by a function `module:name` of this package, loaded when it is asked for."""

    site: str

    def __call__(self, folder: Path, fixture: Callable[[str], Any]) -> Site:
        module, _, name = self.site.partition(":")
        site: Site = getattr(import_module(f"contract.{module}"), name)(folder, fixture)
        return site


V1 = {"manifest_enabled": "false"}
V2 = {"dir_listing_enabled": "false"}

BACKENDS = [
    Backend("memory", memory_site, rows=False),
    Backend("dir-default", LocalDir(), slow=True),  # below a namespace it is V2 with one listing more
    Backend("dir-default-root", LocalDir(), home=(), slow=True),  # tables as V1, with a manifest beside them
    Backend("dir-v2", LocalDir(V2)),
    Backend("dir-v1", LocalDir(V1), home=()),
    Backend("dir-s3", BucketDir(V2), slow=True),
    Backend("rest", Service("outsider_rest:rest_site"), slow=True, listings=6, loads=1),
    Backend("iceberg", Service("outsider_iceberg:iceberg_site"), slow=True, listings=6, loads=1, strangers=True),
    Backend("iceberg-nessie", Service("outsider_iceberg:nessie_site"), slow=True, listings=6, loads=1, strangers=True),
    Backend("unity", Service("outsider_unity:unity_site"), slow=True, strangers=True),
    Backend("glue", Service("outsider_glue:glue_site"), slow=True, strangers=True),
]
ROOTS_OF_BUCKETS = [
    Backend("dir-default-root-s3", BucketDir(), home=(), slow=True),
    Backend("dir-v1-s3", BucketDir(V1), home=(), slow=True),
]
"""Root tables in a bucket: test_root_of_a_bucket.py runs the part of the contract that differs for them."""
