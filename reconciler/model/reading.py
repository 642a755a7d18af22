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
