"""Schemas and rows that the outsider brings."""

from __future__ import annotations

import pyarrow as pa

FOREIGN = pa.schema([pa.field("id", pa.int64())])
FOREIGN_ROWS = [{"id": 1}, {"id": 2}]
