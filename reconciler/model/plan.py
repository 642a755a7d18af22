"""The plan: complete, plain data. Apply runs what is in here and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reconciler.model.change import DATA_PLANE, DELETES, Change, DeclareTable, DropIndex, ReplaceIndex
from reconciler.model.coverage import Coverage
from reconciler.model.diagnostic import Source
from reconciler.model.errors import ReadError
from reconciler.model.finding import Finding
from reconciler.model.ident import Ident, ObjectKey
from reconciler.model.spark import Runner
from reconciler.model.values import KeptColumn

FORMAT_VERSION = "1.0"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Risk = Literal["safe", "metadata", "rewrite", "destructive"]
Verdict = Literal["allowed", "blocked", "unsupported"]


@dataclass(frozen=True, slots=True)
class Expect:
    """What an object looks like before a step: `absent`, `present` or `detached`, with the fingerprint of what the
    planner compared. A namespace that is to be dropped is fingerprinted with its children."""

    state: Literal["absent", "present", "detached"]
    fingerprint: str | None = None
    compared: Json = field(default=None, compare=False)
    """What the fingerprint is of, readable and without secrets: with the first step on an object, so that a stale plan
    can say what changed. None in plans of earlier versions."""
    columns: tuple[str, ...] | None = None
    """With `schemaMode: at_least`: the columns that count. Others that came since the plan do not make it stale."""


@dataclass(frozen=True, slots=True)
class Permission:
    """An allow word that a step takes, and where it is written; no source: it is `--allow` of the command line."""

    word: str
    source: Source | None

    def __str__(self) -> str:
        where = f"by `--allow {self.word}`" if self.source is None else f"at {self.source.file}:{self.source.line}"
        return f"`{self.word}` is allowed {where}"


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    catalog: str
    change: Change
    risk: Risk
    reason: str
    verdict: Verdict
    blocked_by: str | None
    """A stable word: why the step is not allowed (None when it is)."""
    needs: tuple[str, ...]
    """Step ids that must be done before. Every delete also waits for every create and update."""
    expect: Expect
    yields: Expect
    """The object right after this step, by simulation."""
    via: tuple[str, ...]
    """Fingerprints the object may have in between, when the step is more than one write."""
    before: Json
    after: Json
    source: Source | None
    purpose: str = ""
    """Of a step that may not run: what it would be for. `reason` names what blocks it, then this."""
    runner: Runner | None = None
    """Of a data-plane step: what runs its tasks."""
    permissions: tuple[Permission, ...] = ()
    """Of a step that runs because of them: a reviewer is to see who allows what."""
    error: ReadError | None = None
    """Of a step that is blocked because something could not be read: what the catalog said."""

    kept: tuple[KeptColumn, ...] = ()
    """Of a step that creates columns: those whose earlier values are not lost. `reason` says it too."""

    @property
    def told_reason(self) -> str:
        return "; ".join([self.reason, *map(str, self.permissions)])

    @property
    def blocking_reason(self) -> str:
        """Of a step that may not run: what blocks it, without what the step would be for."""
        return self.reason.removesuffix(f"; {self.purpose}") if self.purpose else self.reason

    @property
    def reattaches(self) -> bool:
        """A new entry on data that is there already."""
        return isinstance(self.change, DeclareTable) and self.expect.state == "detached"

    @property
    def action(self) -> str:
        return self.change.action

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.catalog, self.change.ident, self.change.kind)

    @property
    def plane(self) -> Literal["control", "data"]:
        return "data" if isinstance(self.change, DATA_PLANE) else "control"

    @property
    def deletes(self) -> bool:
        return isinstance(self.change, DELETES)

    @property
    def loses_data(self) -> bool:
        """It will run, and values go. A table that is deregistered keeps its data; an index can be made anew."""
        kept = self.deletes or isinstance(self.change, DropIndex | ReplaceIndex)
        return self.verdict == "allowed" and self.risk == "destructive" and not kept


def reasons_of(steps: Iterable[Step]) -> list[str]:
    """Why these steps are planned or may not run: what blocks them first, each reason once."""
    steps = [*steps]
    held = [s.blocking_reason for s in steps if s.verdict != "allowed"]
    return list(dict.fromkeys([*held, *(s.purpose or s.told_reason for s in steps)]))


@dataclass(frozen=True, slots=True)
class CatalogSummary:
    """`spec` is the spec as written: secrets, `${env:}` and `${file:}` unresolved. `namespaces` counts what can be
    declared: a warehouse or a Unity catalog, which is always there, is not among them."""

    type: str
    complete: bool
    namespaces: int
    tables: int
    spec: Mapping[str, Json]
    problems: tuple[ReadError, ...] = ()
    """Why it is not complete."""
    projection_stale: tuple[Ident, ...] = ()
    """Tables of ours for which the catalog shows other columns than the data has, and no step changes that because it
    would replace the entry. No change: never counted, never an exit code."""
    coverage: tuple[Coverage, ...] = ()
    other_tables: int = 0
    """Tables of other formats, and views: in no other number here."""
    new_at: str | None = None
    """Nothing exists there yet: the first write makes the catalog."""
    skipped_folders: int = 0
    """Folders in the root of a directory catalog that are no table's."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts objects, not steps. An object counts under create, update or delete by its allowed steps."""

    create: int = 0
    update: int = 0
    delete: int = 0
    blocked: int = 0
    unsupported: int = 0


@dataclass(frozen=True, slots=True)
class PlanNote:
    """Something about a declared object that no step changes, and why. No change: never counted, never an exit code."""

    key: ObjectKey
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    plan_id: str
    tool_version: str
    manifests_digest: str
    catalogs: Mapping[str, CatalogSummary]
    steps: tuple[Step, ...]
    orphans: tuple[ObjectKey, ...]
    unowned: tuple[ObjectKey, ...]
    summary: Summary
    findings: tuple[Finding, ...] = ()
    """What the policy says, in a stable order."""
    left_out: tuple[ObjectKey, ...] = ()
    """Declared objects that were not compared, because the run was asked for others."""
    judged_on: str = ""
    """The day on which waivers were judged (an ISO date); empty when none made a difference."""
    owners: Mapping[ObjectKey, str] = field(default_factory=dict)
    """Of those among `unowned` that somebody else owns."""
    notes: tuple[PlanNote, ...] = ()
    """In order of the objects."""

    @property
    def has_changes(self) -> bool:
        return bool(self.steps)

    @property
    def refused(self) -> str | None:
        """A threshold or a policy stops the whole run: the reason, or None."""
        threshold = next((s.reason for s in self.steps if s.blocked_by == THRESHOLD), None)
        return threshold if threshold is not None else self.refused_by_policy

    @property
    def refused_by_policy(self) -> str | None:
        refusing = [f for f in self.findings if f.refuses]
        if not refusing:
            return None
        first = refusing[0]
        more = f" (and {len(refusing) - 1} more)" if len(refusing) > 1 else ""
        about = f"{first.key}: " if first.key is not None else ""
        return f"policy: {first.code} {about}{first.message}{more}"


# The stable words of `blocked_by`.
ADOPT = "adopt"
FOREIGN_OWNER = "foreign_owner"
OWNER_NOT_SET = "owner_not_set"
NOT_OWNED = "not_owned"
PROTECTED = "protected"
THRESHOLD = "threshold"
UNREADABLE = "unreadable"
INCOMPLETE = "incomplete_listing"
NOT_EMPTY = "not_empty"
TWO_APPLIES = "needs_two_applies"
RENAME_CONFLICT = "rename_conflict"
PARENT_BLOCKED = "needs_blocked_step"
DATA_PLANE_MISSING = "data_plane"
SOURCE_PROBLEM = "source"
STRANGE_LOCATION = "location"
LOCATION_CONFLICT = "location_conflict"
DATA_UNKNOWN = "data_unaccounted"
VALUES = "values"
ALLOW = "allow:"
"""Followed by the allow word that is missing."""
