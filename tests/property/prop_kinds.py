"""The kinds of catalog that cases are rolled for: what their backends can and cannot do, nothing else of them."""

from __future__ import annotations

from reconciler.catalog.memory import MemoryCapabilities

PLAIN = MemoryCapabilities()
ICEBERG_LIKE = MemoryCapabilities(chooses_location=True, root="s3://lake")
GLUE_LIKE = MemoryCapabilities(chooses_location=True, root="s3://lake", shows_columns=True, drop_needs_allow=True)
"""Shows columns and updates them; a drop would cascade."""
UNITY_LIKE = MemoryCapabilities(chooses_location=True, root="s3://lake", shows_columns=True, replaces_tables=True)
"""Shows columns and can change an entry only by replacing it."""
REST_LIKE = MemoryCapabilities(changes_properties=False)
"""Properties are given at creation and never again."""

KINDS = (PLAIN, PLAIN, PLAIN, GLUE_LIKE, UNITY_LIKE, REST_LIKE, ICEBERG_LIKE)
SERVICES = (ICEBERG_LIKE, GLUE_LIKE, UNITY_LIKE, REST_LIKE)
