"""Short reasons for steps, parts of lines, and how long a text is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.core.diff_properties import MapDiff
from reconciler.model.plan import CatalogSummary


def listing(names: Sequence[str], most: int = 4) -> str:
    """At most `most` names, then how many more."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def changed_keys(what: str, diff: MapDiff) -> str:
    """`what` with its verb ("properties differ"); empty when nothing differs."""
    keys = sorted((*diff.set, *diff.unset))
    return f"{what}: {listing(keys)}" if keys else ""


def utf16_length(text: str) -> int:
    """How long databases of the Java world count a text: a character beyond U+FFFF (an emoji) is two units."""
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)


def utf16_parts(text: str, most: int) -> Iterator[str]:
    """The text in parts of at most `most` UTF-16 units. No character is cut in two."""
    start = size = 0
    for at, c in enumerate(text):
        units = utf16_length(c)
        if size + units > most and at > start:
            yield text[start:at]
            start, size = at, 0
        size += units
    yield text[start:]


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def live_size(namespaces: int, tables: int, others: int, thousands: str = "") -> str:
    """`others`: tables of other formats. `thousands`: what stands between them."""
    parts = [(namespaces, "namespace"), (tables, "Lance table" if others else "table")]
    size = ", ".join(f"{n:{thousands}} {noun}{'' if n == 1 else 's'}" for n, noun in parts)
    if not others:
        return size
    return f"{size}, {others:{thousands}} of {'another format' if others == 1 else 'other formats'}"


def size_of(catalog: CatalogSummary) -> str:
    """What a catalog holds, for its heading."""
    size = live_size(catalog.namespaces, catalog.tables, catalog.other_tables)
    skipped = f", {plural(catalog.skipped_folders, 'folder')} skipped" if catalog.skipped_folders else ""
    new = f"; new: nothing exists at {catalog.new_at} yet" if catalog.new_at else ""
    return size + skipped + new


def speed(size: int, seconds: float) -> str:
    """`, 2 MB/s`; empty while there is nothing that would say how fast it is."""
    rate = size / 1e6 / seconds if seconds >= 1 else 0.0
    return f", {rate:.0f} MB/s" if rate >= 1 else f", {rate:.1f} MB/s" if rate >= 0.1 else ""
