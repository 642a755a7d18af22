"""What keeps imported files from saying all that is live."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UnlistedData:
    """A Lance dataset below the root of a directory catalog that is none of its tables."""

    path: str
    kind: str
    """`subfolder`, `no_suffix` or `unregistered`."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    found: tuple[UnlistedData, ...] = ()
    problems: tuple[str, ...] = ()
    """What was not searched, and why."""


@dataclass(slots=True)
class Missed:
    """Counted over all catalogs. Each object and listing was told by itself."""

    unread: int = 0
    """Objects that could not be read, in the files without their content."""
    kept: int = 0
    """Objects that could not be read, in the files as they were declared before."""
    left_out: int = 0
    """Objects that are live and in no file, though they are ours or may be: then they look like orphans."""
    listings: list[str] = field(default_factory=list)
    """Where a listing failed or broke off: there may be more than was seen. Catalog, and namespace if it has one."""

    unlisted: list[tuple[str, Unlisted]] = field(default_factory=list)
    """By catalog: datasets that were seen and are no tables of it. Each kind was told; the files are still all that is
    live."""

    def __bool__(self) -> bool:
        return bool(self.unread or self.kept or self.left_out or self.listings)
