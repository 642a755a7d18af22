"""Which code serves which `type`. Loaded when it is asked for: `validate` never loads lance or boto3.

Third parties add a type by an entry point of the group `reconciler.catalogs` whose name is the type and whose object is
a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from reconciler.catalog.base import Catalog
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec
from reconciler.model.errors import CatalogError, Code

GROUP = "reconciler.catalogs"


@dataclass(frozen=True, slots=True)
class Backend:
    """One catalog type."""

    capabilities: Callable[[Mapping[str, object]], Capabilities]
    """From the spec's keys as written (`${env:…}` unresolved). Pure, quick, and without heavy imports."""
    connect: Callable[[Mapping[str, str]], Catalog]
    """From the same keys resolved to strings (booleans as "true"/"false"). Raises CatalogError."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the spec's keys: `{"properties": {…}, "required": […]}`. A key marked `"x-secret": true` is never
    shown. The built-in types have theirs in `schemas/`."""


_BUILT_IN = {
    "dir": ("directory_capabilities:directory_capabilities", "directory:DirectoryCatalog"),
    "rest": ("rest_capabilities:rest_capabilities", "rest:connect"),
    "iceberg": ("iceberg_capabilities:iceberg_capabilities", "iceberg:connect"),
    "unity": ("unity_capabilities:unity_capabilities", "unity:connect"),
    "glue": ("glue_capabilities:glue_capabilities", "glue:connect"),
}


@cache
def backend_of(type_: str) -> Backend | None:
    """None for a type that nobody serves. A plug-in that cannot be loaded raises CatalogError with its reason."""
    if type_ in _BUILT_IN:
        capabilities, connect = _BUILT_IN[type_]
        return Backend(_later(capabilities), _later(connect))
    found = [e for e in entry_points(group=GROUP) if e.name == type_]
    if not found:
        return None
    if len(found) > 1:
        packages = " and ".join(sorted(str(e.dist.name) if e.dist else e.value for e in found))
        raise CatalogError(Code.INVALID_INPUT, f"the catalog type {type_!r} is claimed by {packages}: uninstall one")
    try:
        loaded = found[0].load()
    except Exception as error:
        raise CatalogError(
            Code.INVALID_INPUT, f"the plug-in for catalog type {type_!r} ({found[0].value}) cannot be loaded: {error}"
        ) from error
    if not isinstance(loaded, Backend) or not isinstance(loaded.options, Mapping):
        raise CatalogError(
            Code.INVALID_INPUT, f"the plug-in for catalog type {type_!r} ({found[0].value}) is not a Backend"
        )
    return loaded


def known_types() -> tuple[str, ...]:
    return (*_BUILT_IN, *sorted({e.name for e in entry_points(group=GROUP)} - set(_BUILT_IN)))


def plugin_options(type_: str) -> Mapping[str, Any] | None:
    """The schema of a plug-in's keys; None for a type that nobody serves, or that is built in. Raises CatalogError."""
    backend = backend_of(type_) if type_ not in _BUILT_IN else None
    return backend.options if backend is not None else None


def capabilities_of(spec: CatalogSpec) -> Capabilities | None:
    """Offline. None for a type that is not known here. Raises CatalogError when a plug-in fails."""
    backend = backend_of(spec.type)
    if backend is None:
        return None
    with _blamed(spec.type):
        return backend.capabilities(spec.options)


def connect(spec: CatalogSpec, options: Mapping[str, str]) -> Catalog:
    """`options` are the spec's keys resolved to strings (booleans as "true"/"false"). Raises CatalogError."""
    backend = backend_of(spec.type)
    if backend is None:
        raise CatalogError(
            Code.UNSUPPORTED,
            f"catalog {spec.name!r}: no catalog type is called {spec.type!r}: install the plug-in that serves it",
        )
    with _blamed(spec.type):
        return backend.connect(options)


@contextmanager
def _blamed(type_: str) -> Iterator[None]:
    """A mistake in somebody's plug-in is told as such, and not as an internal error of ours."""
    try:
        yield
    except CatalogError:
        raise
    except Exception as error:
        if type_ in _BUILT_IN:
            raise
        raise CatalogError(
            Code.INTERNAL, f"the plug-in for catalog type {type_!r} failed: {type(error).__name__}: {error}"
        ) from error


def _later(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")

    def call(options: Mapping[str, Any]) -> Any:
        return getattr(import_module(f"reconciler.catalog.{module}"), attribute)(options)

    return call
