"""What keeps imported files from saying all that is live."""

from __future__ import annotations

from dataclasses import dataclass, field


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

    def __bool__(self) -> bool:
        return bool(self.unread or self.kept or self.left_out or self.listings)
