from __future__ import annotations

from servers.moto import moto

__all__ = ["moto"]
