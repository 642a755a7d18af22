"""How manifests are read: what the command line says beside their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reading:
    variables: Mapping[str, str] = field(default_factory=dict)
    """For `${var:NAME}`."""
    environment: str = ""
    """Whose overlay is read; empty for none."""
    changed_since: str = ""
    """A git revision: the run is about what changed since; empty for everything."""
    catalogs_from: tuple[str, ...] = ()
    """Catalog documents are taken from these files and folders, and the other manifests are somebody else's."""
    env_allow: tuple[str, ...] = ()
    """Beginnings of the names that `${env:NAME}` may have; none: every name, or with `catalogs_from` no name."""
    file_root: tuple[str, ...] = ()
    """Folders that `${file:PATH}` may read from; the same."""
    resolve: bool = True
    """False: `${env:}` and `${file:}` are checked for their form only."""
    sql_code: bool = False
    """SQL of sources may call what it likes, and read files."""
    strict: bool = False
    """Warnings are errors."""
    environment_needed: bool = True
    """False: paths that have no overlay for the environment have nothing to change for it."""
