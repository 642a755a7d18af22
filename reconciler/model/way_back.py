"""How one step of a run can be taken back, from what the report says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.ident import ObjectKey

NEVER_ENDED = "never ended"
"""The status of a step of a run that was killed. Its tag is there if the step came that far."""
TAGGED = frozenset(
    [
        "alter_columns",
        "drop_columns",
        "replace_index",
        "drop_index",
        "backfill_columns",
        "rewrite_columns",
        "materialize_table",
    ]
)
"""Actions that may be destructive or rewriting, and then have the version before them tagged."""


@dataclass(frozen=True, slots=True)
class WayBack:
    step: str
    action: str
    key: ObjectKey
    status: str
    tag: str | None
    """None: no version was kept, because the step lost none."""
    location: str | None
    version_before: int | None
    version_after: int | None

    @property
    def restore(self) -> str | None:
        """The call that brings the version back, as Python."""
        return f"lance.dataset({self._place}, version={self.tag!r}).restore()" if self.tag is not None else None

    @property
    def give_up(self) -> str | None:
        return f"lance.dataset({self._place}).tags.delete({self.tag!r})" if self.tag is not None else None

    @property
    def _place(self) -> str:
        return repr(self.location) if self.location is not None else "LOCATION"

    def to_json(self) -> dict[str, object]:
        return {
            "step": self.step,
            "action": self.action,
            "catalog": self.key.catalog,
            "object": {"kind": self.key.kind, "id": list(self.key.ident)},
            "status": self.status,
            "tag": self.tag,
            "location": self.location,
            "version_before": self.version_before,
            "version_after": self.version_after,
            "restore": self.restore,
            "give_up": self.give_up,
        }


def way_back(result: Mapping[str, Any]) -> WayBack:
    """Raises KeyError, TypeError or ValueError when it is no result of a step."""
    texts = {name: result.get(name) for name in ("tag", "location")}
    if any(value is not None and not isinstance(value, str) for value in texts.values()):
        raise ValueError("tag and location are texts")
    key = ObjectKey(result["catalog"], tuple(result["object"]["id"]), result["object"]["kind"])
    versions = result.get("version_before"), result.get("version_after")
    return WayBack(
        str(result["id"]), str(result["action"]), key, str(result["status"]), texts["tag"], texts["location"], *versions
    )
