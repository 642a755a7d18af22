"""`spec.maintenance`: its defaults, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.load import Loaded
from reconciler.model.coverage import Limit
from reconciler.model.maintenance import Cleanup, Compact, Indexes, Maintenance

from .support import CATALOG, codes, load_text, places, table


def loaded(tmp_path: Path, maintenance: str) -> Loaded:
    return load_text(tmp_path, CATALOG, table("t", f"maintenance: {maintenance}\n"))


def of(found: Loaded) -> Maintenance | None:
    assert found.diagnostics == []
    return found.desired.tables["lake"][("t",)].maintenance


def test_all_of_it(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "{compact: {targetRowsPerFragment: 1000, minSmallFragments: 3, maxDeletedPercent: 2.5},"
        " indexes: {maxUnindexedRows: 7}, cleanup: {olderThan: 2h, keepTagged: false, retainVersions: 4}}",
    )
    assert of(found) == Maintenance(Compact(1000, 3, 2.5), Indexes(Limit(7)), Cleanup(7200, False, 4))


def test_defaults_are_those_of_the_schema(tmp_path: Path) -> None:
    everything = Maintenance(Compact(), Indexes(), Cleanup())
    assert of(loaded(tmp_path, "{compact: {}, indexes: {}, cleanup: {}}")) == everything
    written = (
        "{compact: {targetRowsPerFragment: 1048576, minSmallFragments: 8, maxDeletedPercent: 10},"
        " indexes: {maxUnindexedRows: 100000}, cleanup: {olderThan: 14d, keepTagged: true, retainVersions: 1}}"
    )
    assert of(loaded(tmp_path, written)) == everything


def test_what_is_not_written_is_not_asked_for(tmp_path: Path) -> None:
    assert of(loaded(tmp_path, "{cleanup: {}}")) == Maintenance(cleanup=Cleanup())
    assert load_text(tmp_path, CATALOG, table("t")).desired.tables["lake"][("t",)].maintenance is None


WRONG = {
    "{}": ("M210", "{}"),
    "{cleanup: {olderThan: 59m}}": ("M460", "59m"),
    "{cleanup: {olderThan: 1s}}": ("M460", "1s"),
    "{cleanup: {olderThan: 0d}}": ("M207", "0d"),
    "{cleanup: {olderThan: 14}}": ("M206", "14"),
    "{cleanup: {keepTagged: 1}}": ("M205", "1"),
    "{cleanup: {retainVersions: 0}}": ("M208", "0"),
    "{compact: {minSmallFragments: 1}}": ("M208", "1"),
    "{compact: {targetRowsPerFragment: 0}}": ("M208", "0"),
    "{compact: {maxDeletedPercent: 101}}": ("M208", "101"),
    "{indexes: {maxUnindexedRows: -1}}": ("M208", "-1"),
    "{indexes: {maxUnindexed: 1}}": ("M203", "maxUnindexed"),
    "{compaction: {}}": ("M203", "compaction"),
}


@pytest.mark.parametrize("maintenance", WRONG)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, maintenance: str) -> None:
    code, at = WRONG[maintenance]
    found = loaded(tmp_path, maintenance)
    assert codes(found) == [code]
    if code == "M206":
        assert found.diagnostics[0].hint.startswith("write 14d, say: an age is a number and one of s, m, h, d, w")
    lines = (tmp_path / "m.yaml").read_text().splitlines()
    ((line, column),) = places(found, code)
    assert lines[line - 1][column - 1 :].startswith(at)
