"""`unlock` shows who holds a lease; it removes it when that is said, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import catalog, reconciler, table, write
from test_terminal import at_terminal, typed_ahead

from reconciler.catalog.lease_files import LeaseFiles
from reconciler.catalog.storage import open_storage
from reconciler.engine.lease import LeaseLog
from reconciler.model.lease import Holder, Lease

HOLDER = Holder("ann", "far", 77, "reconciler apply m --yes", "https://ci.example/9")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    return tmp_path


def log(folder: Path) -> LeaseLog:
    return LeaseLog(LeaseFiles(open_storage(str(folder / "lake"), {}), "__reconciler/lease"))


def hold(folder: Path) -> None:
    made = log(folder).swap(log(folder).read(), Lease("other", True, 60, "some time", "later", HOLDER))
    assert made is not None


@pytest.mark.parametrize("how", ["text", "json"])
def test_nothing_is_held(folder: Path, how: str) -> None:
    run = reconciler(folder, "unlock", "m.yaml", "--format", how)
    assert run.code == 0
    assert run.json == {"leases": []} if how == "json" else run.out == "No lease is held.\n"


@pytest.mark.parametrize("how", ["text", "json"])
def test_without_a_terminal_it_only_shows(folder: Path, how: str) -> None:
    hold(folder)
    before = log(folder).read()
    run = reconciler(folder, "unlock", "m.yaml", "--format", how)
    assert run.code == 6
    assert all(part in run.out for part in ("ann", "far", "77", "reconciler apply m --yes", "https://ci.example/9"))
    assert how == "text" or run.json["leases"][0]["removed"] is False
    assert run.err == "nothing was removed: --yes removes what is shown\n"
    assert log(folder).read() == before


@pytest.mark.parametrize("how", ["text", "json"])
def test_yes_removes_it(folder: Path, how: str) -> None:
    hold(folder)
    run = reconciler(folder, "unlock", "m.yaml", "--yes", "--format", how)
    assert run.code == 0
    assert "ann" in run.out
    assert how == "text" or run.json["leases"][0]["removed"] is True
    assert log(folder).read().held is None


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("y", 6)])
def test_at_a_terminal_it_asks(folder: Path, answer: str, code: int) -> None:
    hold(folder)
    ended, seen = at_terminal(folder, "unlock", "m.yaml", answer=answer, NO_COLOR="1")
    assert (ended, "ann@far" in seen) == (code, True), seen
    assert "stops at its next write, within about a second" in " ".join(seen.split())
    assert "renew it, for up to" not in seen
    assert (log(folder).read().held is None) is (answer == "yes")


@pytest.mark.slow
def test_what_is_typed_before_it_asks_removes_nothing(folder: Path) -> None:
    hold(folder)
    code, seen = typed_ahead(folder, "yes\n", "unlock", "m.yaml", seconds=1, answer=None)
    assert (code, "not removed" in seen) == (6, True), seen
    assert log(folder).read().held is not None


@pytest.mark.parametrize("text", ["[" * 200_000, '{"ttl": NaN, "pid": 1e400}', "\x00\x1b]0;x\x07"])
def test_a_record_of_nobody_is_shown_and_removed(folder: Path, text: str) -> None:
    log(folder)._records.create(log(folder).read().number + 1, text)
    write(folder, catalog(), table("t"), table("u"))
    refused = reconciler(folder, "apply", "m.yaml", "--yes", "--lock-timeout", "0", "--report", folder / "r.json")
    assert refused.code == 6, refused
    assert "somebody whose record cannot be read" in json.loads((folder / "r.json").read_text())["message"]
    shown = reconciler(folder, "unlock", "m.yaml")
    assert (shown.code, "somebody whose record cannot be read" in shown.out) == (6, True)
    assert reconciler(folder, "unlock", "m.yaml", "--yes").code == 0
    assert reconciler(folder, "apply", "m.yaml", "--yes", "--lock-timeout", "0").code == 0


@pytest.mark.parametrize("name", ["9" * 100, "9" * 19, "1" + "0" * 18])
def test_a_file_that_no_run_can_have_made_is_in_nobodys_way(folder: Path, name: str) -> None:
    """A number that leaves no next one: what is made after it would not be seen."""
    stray = folder / "lake" / "__reconciler" / "lease" / f"{name}.json"
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.touch()
    hold(folder)
    before = sorted(stray.parent.iterdir())
    run = reconciler(folder, "unlock", "m.yaml", "--yes")
    assert (run.code, "ann" in run.out) == (0, True)
    assert len(sorted(stray.parent.iterdir())) == len(before), "one record in place of the other"
    write(folder, catalog(), table("t"), table("u"))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    assert stray.exists(), "it is not ours to remove"


def test_the_last_number_is_told_with_what_to_do(folder: Path) -> None:
    stray = folder / "lake" / "__reconciler" / "lease" / f"{'9' * 18}.json"
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.touch()
    before = sorted(stray.parent.iterdir())
    run = reconciler(folder, "unlock", "m.yaml", "--yes")
    assert run.code == 1
    assert f"record {'9' * 18} in {stray.parent}" in run.err
    assert "remove it by hand" in run.err
    assert sorted(stray.parent.iterdir()) == before, "nothing is left behind with each try"
    stray.unlink()
    write(folder, catalog(), table("t"), table("u"))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
