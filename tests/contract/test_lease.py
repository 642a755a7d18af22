"""Two applies never write to one catalog at a time: real processes on every backend."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.cli_runs import reconciler

from contract.backends import BACKENDS, Backend, LocalDir, Site
from contract.lake import namespace, table
from contract.lease_runs import Runs
from reconciler.engine.lease import LeaseLog
from reconciler.engine.lease_keeper import FRESH
from reconciler.model.ident import Ident
from reconciler.model.lease import Lease
from reconciler.model.observed import Scope

PLACES = [b for b in BACKENDS if b.rows and b.name not in ("dir-default", "dir-default-root")]
LOCAL = next(b for b in BACKENDS if isinstance(b.make, LocalDir) and b.home)


@pytest.fixture(params=[pytest.param(b, id=b.name, marks=pytest.mark.slow) for b in PLACES])
def backend(request: pytest.FixtureRequest) -> Backend:
    made: Backend = request.param
    return made


@pytest.fixture
def site(backend: Backend, tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    return backend.make(tmp_path, request.getfixturevalue)


@pytest.fixture
def local(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with manifests of a lake on the local disk."""
    write(tmp_path, LOCAL.make(tmp_path, request.getfixturevalue), LOCAL.home)
    return tmp_path


def write(folder: Path, site: Site, home: Ident, tables: int = 2) -> None:
    catalog = {
        "apiVersion": "reconciler.lance/v1",
        "kind": "Catalog",
        "metadata": {"name": "lake"},
        "spec": {**site.options, "management": {"owner": "team-a"}},
    }
    at = (*site.container, *home)
    documents: list[Any] = [catalog, *([namespace(at)] if home else [])]
    documents += [table((*at, f"t{n}"), {"id": "int64"}, location=place(site, n)) for n in range(tables)]
    for document in documents:
        if document["kind"] == "Table" and document["spec"]["location"] is None:
            del document["spec"]["location"]
    (folder / "m.yaml").write_text(yaml.safe_dump_all(documents))


def place(site: Site, n: int) -> str | None:
    """Where a catalog does not choose one."""
    ident = (*site.container, "n", f"t{n}")
    free = site.capabilities.chooses_location and site.capabilities.location_of(ident) is None
    return f"{site.options['root']}/t{n}" if free else None


def log_of(site: Site, home: Ident) -> LeaseLog:
    catalog: Any = site.open()
    (records,) = catalog.lease_records([(*site.container, *home, "t0")])
    return LeaseLog(records)


def test_a_second_run_is_refused_and_a_killed_one_replaced_at_once(
    backend: Backend, site: Site, tmp_path: Path
) -> None:
    """With a time to live of a minute: what is not waited for is not waited for."""
    write(tmp_path, site, backend.home)
    runs = Runs(tmp_path)
    with runs.holding("first") as first:
        code = runs.run("second", "apply", "m.yaml", "--yes", "--lock-timeout", "0", "--report", "second.json")
        assert code == 6, runs.out("second")
        assert runs.writers() == []
        report = json.loads((tmp_path / "second.json").read_text())
        assert (report["outcome"], report["leases"][0]["ending"]) == ("refused", "refused")
        assert f"pid {first.pid}" in report["message"]
        assert "reconciler unlock PATH --catalog lake" in report["message"]
        first.kill()
        first.wait()
        assert runs.run("third", "apply", "m.yaml", "--yes", "--lock-timeout", "0") == 0, runs.out("third")
    assert set(runs.writers()) == {"third"}
    assert "was taken over" in runs.out("third")
    assert log_of(site, backend.home).read().held is None
    again = reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode")
    assert again.code == 0, again.out + again.err


def test_one_of_many_takes_it_and_nobody_sees_it(backend: Backend, site: Site, tmp_path: Path) -> None:
    """The promise that all rests on: of those who create one number one succeeds."""
    home = (*site.container, *backend.home)
    logs = [log_of(site, backend.home) for _ in range(6)]
    logs[0].swap(logs[0].read(), Lease("first", False, 60, "", ""))
    for turn in range(3):
        seen = logs[0].read()
        gate = threading.Barrier(len(logs))
        won: list[str] = []

        def compete(n: int, seen: Any = seen, gate: Any = gate, won: list[str] = won, turn: int = turn) -> None:
            gate.wait()
            if logs[n].swap(seen, Lease(f"{turn}-{n}", True, 60, "", "")) is not None:
                won.append(f"{turn}-{n}")

        threads = [threading.Thread(target=compete, args=(n,)) for n in range(len(logs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        held = logs[0].read().held
        assert held is not None
        assert [held.run] == won
    catalog = site.open()
    shown = {o.ident for o in catalog.scan(Scope(namespaces=frozenset({home}))) if hasattr(o, "finding")}
    assert shown <= {site.container}
    if backend.name != "glue":  # its root is not a database that could be dropped
        assert not catalog.children(site.container)
    catalog.close()


def test_records_past_ten_digits_are_seen(backend: Backend, site: Site) -> None:
    """A number that was written and never listed would switch the lease off for good."""
    catalog: Any = site.open()
    (records,) = catalog.lease_records([(*site.container, *backend.home, "t0")])
    records.create(9_999_999_999, Lease("a", False, 60, "", "").to_text())
    log = LeaseLog(records)
    made = log.swap(log.read(), Lease("b", True, 60, "", ""))
    assert made is not None
    assert made.number == 10_000_000_000
    assert log.read() == made
    assert list(records.numbers()) == [made.number]
    catalog.close()


# what does not depend on the backend, on the local disk


@pytest.mark.slow
def test_a_second_run_waits_and_then_finds_nothing_to_do(local: Path) -> None:
    runs = Runs(local)
    with (
        runs.holding("first") as first,
        runs.started("second", "apply", "m.yaml", "--yes", "--report", "2.json") as two,
    ):
        runs.until(lambda: "waiting for the lease of catalog lake" in runs.out("second"), two)
        assert f"pid {first.pid}" in runs.out("second")
        runs.open_gate("first")
        assert (first.wait(90), two.wait(90)) == (0, 0), runs.out("second")
    assert set(runs.writers()) == {"first"}
    report = json.loads((local / "2.json").read_text())
    assert {step["status"] for step in report["steps"]} == {"skipped"}
    assert report["leases"][0]["waited_seconds"] > 0
    journal = "".join(file.read_text() for file in (local / ".reconciler" / "journal").iterdir())
    assert '"state":"waiting"' in journal


@pytest.mark.slow
def test_a_run_that_waited_plans_anew_when_the_other_changed_what_it_saw(local: Path) -> None:
    runs = Runs(local)
    documents = list(yaml.safe_load_all((local / "m.yaml").read_text()))
    documents[1]["spec"] = {"properties": {"team": "b"}}
    (local / "other.yaml").write_text(yaml.safe_dump_all(documents))
    with runs.holding("first") as first, runs.started("second", "apply", "other.yaml", "--yes") as two:
        runs.until(lambda: "waiting for the lease of catalog lake" in runs.out("second"), two)
        runs.open_gate("first")
        assert (first.wait(90), two.wait(90)) == (0, 0), runs.out("second")
    assert "note: planned anew: the plan is stale" in runs.out("second")
    assert set(runs.writers()) == {"first", "second"}
    assert reconciler(local, "plan", "other.yaml", "--detailed-exitcode").code == 0


@pytest.mark.slow
def test_runs_at_once_never_interleave(local: Path) -> None:
    """Different manifests on one place: each has steps of its own."""
    runs = Runs(local)
    names = ["a", "b", "c"]
    documents = list(yaml.safe_load_all((local / "m.yaml").read_text()))
    processes = []
    for name in names:
        own = [{**documents[0], "metadata": {"name": f"lake-{name}"}}]
        for n in range(3):
            ident = {"catalog": f"lake-{name}", "id": [f"{name}{n}"]}
            own.append({**documents[0], "kind": "Namespace", "metadata": ident, "spec": {}})
        (local / f"{name}.yaml").write_text(yaml.safe_dump_all(own))
        processes.append(runs.started(name, "apply", f"{name}.yaml", "--yes"))
    with processes[0] as one, processes[1] as two, processes[2] as three:
        codes = [one.wait(90), two.wait(90), three.wait(90)]
    assert codes == [0, 0, 0], [runs.out(name) for name in names]
    order = runs.writers()
    changes = sum(1 for before, after in itertools.pairwise(order) if before != after)
    assert (len(order), changes) == (18, 2), runs.audit()


@pytest.mark.slow
def test_a_run_that_slept_writes_nothing_more(local: Path) -> None:
    runs = Runs(local, ttl=3)
    with runs.holding("first") as first:
        first.send_signal(19)  # SIGSTOP
        assert runs.run("second", "apply", "m.yaml", "--yes") == 0, runs.out("second")
        assert set(runs.writers()) == {"second"}
        runs.open_gate("first")
        first.send_signal(18)  # SIGCONT
        assert first.wait(90) == 1, runs.out("first")
    assert set(runs.writers()) == {"second"}
    report = json.loads((local / "first.json").read_text())
    assert report["outcome"] == "failed"
    assert report["leases"][0]["ending"] == "lost"
    assert "the lease of catalog lake was lost" in report["message"]
    assert "had it meanwhile" in report["message"]


@pytest.mark.slow
def test_a_run_that_slept_alone_goes_on(local: Path) -> None:
    runs = Runs(local, ttl=1)
    with runs.holding("first") as first:
        first.send_signal(19)
        threading.Event().wait(2)
        runs.open_gate("first")
        first.send_signal(18)
        assert first.wait(90) == 0, runs.out("first")


@pytest.mark.slow
def test_a_signal_gives_it_back_and_ends_the_waiting(local: Path) -> None:
    runs = Runs(local)
    with (
        runs.holding("first") as first,
        runs.started("second", "apply", "m.yaml", "--yes", "--report", "2.json") as two,
    ):
        runs.until(lambda: "waiting for the lease" in runs.out("second"), two)
        two.terminate()
        assert two.wait(90) == 130, runs.out("second")
        assert json.loads((local / "2.json").read_text())["outcome"] == "interrupted"
        first.terminate()
        runs.until(lambda: "SIGTERM" in runs.out("first"), first)
        runs.open_gate("first")
        assert first.wait(90) == 130
    assert set(runs.writers()) == {"first"}
    assert runs.run("third", "apply", "m.yaml", "--yes", "--lock-timeout", "0") == 0, runs.out("third")
    assert "taken over" not in runs.out("third")


@pytest.mark.slow
def test_unlock_shows_and_takes_away_and_the_run_notices(local: Path) -> None:
    runs = Runs(local, ttl=3)
    assert runs.run("none", "unlock", "m.yaml") == 0
    assert "No lease is held." in runs.out("none")
    with runs.holding("first") as first:
        assert runs.run("asked", "unlock", "m.yaml", "--catalog", "lake") == 6, "there is no terminal"
        assert f"{first.pid}, still running on this machine" in runs.out("asked")
        assert runs.run("json", "unlock", "m.yaml", "--yes", "--format", "json") == 0
        shown = runs.out("json")
        value = json.loads(shown[shown.index("{") :])["leases"][0]
        assert (value["pid"], value["process"], value["removed"]) == (first.pid, "running", True)
        runs.until(lambda: "was lost: it was taken away with `reconciler unlock`" in runs.out("first"), first)
        runs.open_gate("first")
        assert first.wait(90) == 1, runs.out("first")
    assert runs.writers() == []


@pytest.mark.slow
def test_a_lease_that_is_taken_away_is_seen_by_the_next_write(local: Path) -> None:
    """With a time to live of a minute: no renewal is due for long."""
    runs = Runs(local)
    with runs.holding("first") as first:
        assert runs.run("unlock", "unlock", "m.yaml", "--yes") == 0, runs.out("unlock")
        threading.Event().wait(FRESH)
        runs.open_gate("first")
        assert first.wait(90) == 1, runs.out("first")
    assert runs.writers() == []
    report = json.loads((local / "first.json").read_text())
    assert (report["outcome"], report["leases"][0]["ending"]) == ("failed", "lost")
    assert "it was not written: the lease of catalog lake was lost: it was taken away" in runs.out("first")
    assert runs.run("second", "apply", "m.yaml", "--yes", "--lock-timeout", "0") == 0, runs.out("second")


@pytest.mark.slow
@pytest.mark.parametrize("ttl", [None, 3])
def test_a_lease_folder_that_is_removed_is_no_unlock(local: Path, ttl: float | None) -> None:
    """With a short time to live the next renewal comes before the write."""
    runs = Runs(local, ttl=ttl)
    with runs.holding("first") as first:
        shutil.rmtree(local / "lake" / "__reconciler" / "lease")
        threading.Event().wait(2 * FRESH)
        runs.open_gate("first")
        assert first.wait(90) == 1, runs.out("first")
    assert runs.writers() == []
    assert "was lost: its record is gone: somebody removed " in runs.out("first")
    assert "and not with `reconciler unlock`" in runs.out("first")
    assert runs.run("second", "apply", "m.yaml", "--yes", "--lock-timeout", "0") == 0, runs.out("second")


@pytest.mark.slow
def test_a_plan_without_steps_takes_no_lease(local: Path) -> None:
    assert reconciler(local, "apply", "m.yaml", "--yes").code == 0
    before = sorted((local / "lake" / "__reconciler" / "lease").iterdir())
    for command in (["apply", "m.yaml", "--yes"], ["plan", "m.yaml"], ["drift", "m.yaml"]):
        again = reconciler(local, *command)
        assert again.code == 0, again.out + again.err
    assert sorted((local / "lake" / "__reconciler" / "lease").iterdir()) == before
    assert not list((local / "lake" / "__reconciler" / "lease").glob(".tmp*"))
