from __future__ import annotations

from servers.iceberg_rest import iceberg_rest
from servers.moto import moto
from servers.rest_adapter import rest_adapter

__all__ = ["iceberg_rest", "moto", "rest_adapter"]
