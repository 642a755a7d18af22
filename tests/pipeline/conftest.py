from __future__ import annotations

from servers.moto import moto
from servers.rest_adapter import rest_adapter

__all__ = ["moto", "rest_adapter"]
