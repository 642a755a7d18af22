"""What the command line lets a plan do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reconciler.model.capabilities import Capabilities
from reconciler.model.coverage import Limit
from reconciler.model.ident import Ident
from reconciler.model.spark import Runner

NO_DATA_PLANE = "it moves table data, which takes Spark"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    prune: bool = False
    adopt: bool = False
    take_over: frozenset[str] = frozenset()
    """Other owners whose objects may be taken."""
    allow: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()
    """Globs over dotted identifiers; empty means everything."""
    data_plane: str | None = NO_DATA_PLANE
    """Why data-plane steps cannot run, or None when they can."""
    runner: Runner | None = None
    """What runs the tasks of data-plane steps; None: Spark, and this process for columns of small tables."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Why functions of backfills cannot run, by their names; those that can are not in it."""
    environment: str | None = None
    """What rules of a policy may be limited to."""
    today: str = ""
    """An ISO date, for the waivers: they hold up to a day. Without it none holds."""
    opened: Mapping[str, Capabilities] = field(default_factory=dict)
    """By catalog, what the open one says of itself, with `${env:}` resolved: policies are judged by it, and nothing of
    it is shown."""
    clean: Callable[[str], str] = str
    """Takes out secrets that the run knows: for what a plan keeps of live objects."""
    only: Mapping[str, frozenset[Ident]] | None = None
    """By catalog, the identifiers that the run is about, declared or not; None means all of them."""
    max_unindexed: Limit | None = None
    """The plan reports every declared index that leaves more rows than this unindexed."""
