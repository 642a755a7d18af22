"""Which files of a source are in a table already, by its ledger. A file is known by where it is and by what it is (size
and time, or etag; on a disk also its content); when only one of the two is known, nobody can tell whether its rows are
in, and it is a question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Stamps = Mapping[str, str]
"""Hash of a place -> what the file there is: a hash of what a listing shows of it, and after a dot, where it was looked
into, one of its content."""


@dataclass(frozen=True, slots=True)
class FilesBySight:
    new: dict[str, str]
    changed: dict[str, str]
    """The place is known, and the file there is another one by now, or was only touched."""
    copies: dict[str, str]
    """The place is not known, and a file that is in was the same."""
    told: frozenset[str]
    """Keys of the ledger that files of the source account for: they stay as they are."""

    @property
    def questions(self) -> dict[str, str]:
        return {**self.changed, **self.copies}


def by_sight(files: Stamps, also: Mapping[str, Sequence[str]], ledger: Stamps) -> FilesBySight:
    """`also`: further keys under which the ledger may know a file: the place that its links lead to, and the names that
    earlier versions noted. Such a name may be that of another file, so one that is accounted for says nothing more."""
    known = {key: [k for k in (key, *also.get(key, ())) if k in ledger] for key in files}
    same = {key for key, keys in known.items() if any(as_listed(ledger[k], files[key]) for k in keys)}
    told = frozenset(k for key in same for k in known[key] if as_listed(ledger[k], files[key]))
    stamps = {part for stamp in (*ledger.values(), *(files[key] for key in same)) for part in stamp.split(".")}
    found = FilesBySight({}, {}, {}, told)
    for key, stamp in files.items():
        if key in same:
            continue
        if any(k == key or k not in told for k in known[key]):
            found.changed[key] = stamp
        elif not stamps.isdisjoint(stamp.split(".")):
            found.copies[key] = stamp
        else:
            found.new[key] = stamp
    return found


def as_listed(one: str, other: str) -> bool:
    """A listing shows the same of both."""
    return one.partition(".")[0] == other.partition(".")[0]


def noted_also(files: Stamps, also: Mapping[str, Sequence[str]], told: Collection[str] = ()) -> dict[str, str]:
    """What the ledger learns of these files beside their own places."""
    return {key: stamp for own, stamp in files.items() for key in also.get(own, ()) if key not in told}
