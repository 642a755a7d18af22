"""Three-way comparison of string maps: what we set last, what is live, what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.desired import DesiredObject
from reconciler.model.plan import Json
from reconciler.model.state import DESCRIPTION_KEY


@dataclass(frozen=True, slots=True)
class MapDiff:
    set: dict[str, str]
    unset: tuple[str, ...]
    applied: tuple[str, ...]
    """Sorted: the keys that are ours from now on."""

    def __bool__(self) -> bool:
        return bool(self.set or self.unset)

    def with_nulls(self) -> dict[str, str | None]:
        return {**self.set, **dict.fromkeys(self.unset)}

    def before(self, live: Mapping[str, str]) -> dict[str, Json]:
        return {k: live.get(k) for k in (*self.set, *self.unset)}


def ignored_paths(want: DesiredObject) -> frozenset[str]:
    return with_description(want.ignore_differences)


def with_description(ignored: Iterable[str]) -> frozenset[str]:
    """`ignoreDifferences`, with `description` as the property that it is."""
    paths = frozenset(ignored)
    return paths | {f"properties.{DESCRIPTION_KEY}"} if DESCRIPTION_KEY in paths else paths


def left_to_others(ignored: frozenset[str]) -> Callable[[str], bool]:
    """Of the property with this key."""
    return lambda key: "properties" in ignored or f"properties.{key}" in ignored


def diff_map(
    want: Mapping[str, str], live: Mapping[str, str], applied: Sequence[str], ignored: frozenset[str], prefix: str
) -> MapDiff:
    """A key that we set once and the manifest lost is removed; keys that others set stay. `ignored` holds paths such
    as `properties` or `properties.team`; an ignored key is neither set nor removed nor ours."""
    if prefix in ignored:
        return MapDiff({}, (), ())
    skip = {p[len(prefix) + 1 :] for p in ignored if p.startswith(prefix + ".")}
    kept = {k: v for k, v in want.items() if k not in skip}
    to_set = {k: v for k, v in sorted(kept.items()) if live.get(k) != v}
    to_unset = tuple(sorted(k for k in applied if k not in kept and k in live and k not in skip))
    return MapDiff(to_set, to_unset, tuple(sorted(kept)))
