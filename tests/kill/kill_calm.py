"""What a kill is measured against: an undisturbed run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kill_lake import described, manifests, seen
from kill_runs import Line, finish, story


@dataclass(frozen=True)
class Calm:
    """An undisturbed run, one step after another: its journal, and what it left behind."""

    story: list[Line]
    seen: dict[str, Any]
    described: dict[str, Any]


def undisturbed(folder: Path, tables: int) -> Calm:
    (folder / "m.yaml").write_text(manifests(tables))
    finish(folder, "apply", "m.yaml", "--yes", "--journal", "j.jsonl", "--parallelism", "1")
    return Calm(story(folder / "j.jsonl"), seen(folder / "lake"), described(folder / "lake"))
