"""Import of what cannot be read: it is named in the files, never taken for absent, and the run is no success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runs import Run, catalog, namespace, reconciler, table, write

from reconciler.model.errors import Code
from reconciler.model.observed import Gap, Snapshot
from reconciler.session import Session

SPEC = "properties: {team: x}\n  indexes: [{column: id, type: btree}]\n  config: {k: v}\n  description: photos"
SCHEMA = "[{name: id, type: int64, comment: key}]"
LAST = "1 object could not be read, and is in the files without content"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """All of it ours; `a.t` cannot be opened."""
    write(tmp_path, catalog(), namespace("a"), table("a", "ok"), table("a", "t", schema=SCHEMA, spec=SPEC), table("r"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    (tmp_path / "m.yaml").unlink()
    write(tmp_path, catalog(), name="c.yaml")
    break_(tmp_path, "*a$t")
    return tmp_path


def versions(lake: Path, name: str) -> list[Path]:
    return [*lake.glob(f"lake/{name}/_versions/*")]


def break_(lake: Path, name: str) -> None:
    for file in versions(lake, name):
        file.with_name("kept-" + file.name).write_bytes(file.read_bytes())
        file.write_text("garbage")


def mend(lake: Path, name: str) -> None:
    for file in versions(lake, name):
        if file.name.startswith("kept-"):
            file.rename(file.with_name(file.name.removeprefix("kept-")))


def imported(lake: Path, *flags: str) -> Run:
    return reconciler(lake, "import", "c.yaml", "-o", "live", *flags)


def last(run: Run) -> str:
    return run.err.splitlines()[-1]


def test_it_is_named_in_the_files_and_never_pruned(lake: Path) -> None:
    run = imported(lake)
    assert (run.code, LAST in last(run)) == (5, True), run.err
    text = (lake / "live/lake/a.yaml").read_text()
    assert "# table a.t could not be read: " in text
    planned = reconciler(lake, "plan", "live", "--prune", "--format", "json").json
    assert [(s["object"]["id"], s["blocked_by"]) for s in planned["steps"]] == [(["a", "t"], "unreadable")]
    assert planned["orphans"] == []
    applied = reconciler(lake, "apply", "live", "--prune", "--yes")
    assert applied.code == 3
    mend(lake, "*a$t")
    assert "Orphaned" not in reconciler(lake, "plan", "live").out


def test_what_we_set_on_it_stays_when_it_can_be_read_again(lake: Path) -> None:
    """Not filled in yet: a document that says nothing must not take away what we once set."""
    imported(lake)
    mend(lake, "*a$t")
    assert reconciler(lake, "apply", "live", "--prune", "--yes", "--allow", "drop_index").code == 0
    assert imported(lake).code == 0
    text = (lake / "live/lake/a.yaml").read_text()
    for kept in ("team: x", "{column: id, type: btree}", "config: {k: v}", "description: photos", "comment: key"):
        assert kept in text


def test_the_next_import_that_can_read_it_fills_it_in(lake: Path) -> None:
    imported(lake)
    file = lake / "live/lake/a.yaml"
    with_mine = "# mine\n" + file.read_text() + "# end\n"
    file.write_text(with_mine)
    again = imported(lake)
    assert (again.code, again.out, file.read_text()) == (5, "", with_mine)
    assert LAST in last(again)
    mend(lake, "*a$t")
    run = imported(lake)
    assert (run.code, run.out) == (0, "updated live/lake/a.yaml\n"), run.err
    text = file.read_text()
    assert "could not be read" not in text
    assert "ignoreDifferences" not in text
    assert (text.startswith("# mine\n"), text.endswith("# end\n")) == (True, True)
    assert reconciler(lake, "plan", "live", "--detailed-exitcode").code == 0
    assert (imported(lake).out, imported(lake).code) == ("", 0)


def test_the_first_document_of_a_file_is_filled_in_too(lake: Path) -> None:
    mend(lake, "*a$t")
    break_(lake, "r.lance")
    assert imported(lake).code == 5
    mend(lake, "r.lance")
    assert imported(lake).out == "updated live/lake/root-tables.yaml\n"
    assert (lake / "live/lake/root-tables.yaml").read_text().startswith("apiVersion")
    assert reconciler(lake, "plan", "live", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("could not be read", "was away"),
        lambda text: text.replace("  ignoreDifferences:", "  allow: [drop_index]\n  ignoreDifferences:"),
    ],
    ids=["comment", "document"],
)
def test_what_somebody_changed_is_not_filled_in(lake: Path, change: Callable[[str], str]) -> None:
    imported(lake)
    file = lake / "live/lake/a.yaml"
    before = change(file.read_text())
    assert before != file.read_text()
    file.write_text(before)
    mend(lake, "*a$t")
    imported(lake)
    assert file.read_text() == before


def test_a_document_that_is_there_stays_as_it_is(lake: Path) -> None:
    mend(lake, "*a$t")
    imported(lake)
    before = (lake / "live/lake/a.yaml").read_text()
    break_(lake, "*a$t")
    run = imported(lake)
    assert (run.code, (lake / "live/lake/a.yaml").read_text()) == (5, before)
    assert last(run) == "warning: 1 declared object could not be read: the document stays as it was"
    assert "say what is live" not in run.err


def test_a_dry_run_and_only_unmanaged_are_no_success_either(lake: Path) -> None:
    run = imported(lake, "--dry-run")
    assert (run.code, "1 object could not be read, and would be in the files" in last(run)) == (5, True)
    assert not (lake / "live").exists()
    assert "+# table a.t could not be read" in run.out
    assert imported(lake, "--only-unmanaged").code == 0, "a.t is ours: its entry says so"
    write(lake, catalog(owner="me"), name="c.yaml")
    other = lake / "lake" / "x.lance"
    other.mkdir()
    (other / "data").write_text("no dataset")
    unmanaged = reconciler(lake, "import", "c.yaml", "-o", "mine", "--only-unmanaged")
    assert (unmanaged.code, LAST in last(unmanaged)) == (5, True)


def test_a_listing_that_failed(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is listed or it is not; services fail half-way."""
    mend(lake, "*a$t")
    whole = Session.look

    def look(self: Session, name: str, scope: object) -> Snapshot:
        found = whole(self, name, scope)  # type: ignore[arg-type]
        gap = Gap(("a",), Code.SERVICE_UNAVAILABLE, "503")
        return Snapshot(found.namespaces, {("r",): found.tables["r",]}, (gap,))

    monkeypatch.setattr(Session, "look", look)
    run = imported(lake)
    assert run.code == 5
    assert run.err.count("a in catalog lake could not be listed completely: ServiceUnavailable: 503") == 1
    assert last(run) == (
        "warning: the files in live are not all that is live: not everything could be listed (lake:a): "
        "do not --prune with them"
    )
    assert [p.name for p in sorted((lake / "live/lake").iterdir())] == ["a.yaml", "catalog.yaml", "root-tables.yaml"]
    assert imported(lake, "--dry-run").code == 5
    assert imported(lake, "--target", "r").code == 0, "nothing below a was asked for"
    assert imported(lake, "--target", "a.**").code == 5
    again = imported(lake)
    assert "not live" not in again.err, "nothing below a failed listing is called absent"


@pytest.mark.parametrize("where", [(), ("a",)])
def test_what_a_gap_hides_is_never_called_not_live(
    lake: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[str, ...]
) -> None:
    """`a.t` is in the files already, and neither listing shows it; `r` is there, and cannot be read."""
    mend(lake, "*a$t")
    assert imported(lake).code == 0
    break_(lake, "r.lance")
    before = {file: file.read_text() for file in (lake / "live").rglob("*.yaml")}
    whole = Session.look

    def look(self: Session, name: str, scope: object) -> Snapshot:
        found = whole(self, name, scope)  # type: ignore[arg-type]
        tables = {ident: finding for ident, finding in found.tables.items() if ident[0] != "a"}
        return Snapshot(found.namespaces, tables, (Gap(where, Code.SERVICE_UNAVAILABLE, "503"),))

    monkeypatch.setattr(Session, "look", look)
    run = imported(lake)
    assert run.code == 5
    assert "not live" not in run.err
    listed = "a in catalog lake" if where else "catalog lake"
    assert f"warning: {listed} could not be listed completely: ServiceUnavailable: 503" in run.err
    assert f"1 declared object could not be read: {WORDS}" in run.err
    assert ("lake:a" if where else "lake") in last(run)
    assert {file: file.read_text() for file in (lake / "live").rglob("*.yaml")} == before


WORDS = "the document stays as it was"


def test_in_an_overlay(lake: Path) -> None:
    """Documents of all environments are not changed for one; its own are filled in."""
    (lake / "live/overlays/prod").mkdir(parents=True)
    write(lake / "live", catalog(), name="c.yaml")
    run = reconciler(lake, "import", "live", "-o", "live", "--env", "prod")
    file = lake / "live/overlays/prod/lake/a.yaml"
    assert (run.code, "overlay: add" in file.read_text(), LAST in last(run)) == (5, True, True), run.err
    mend(lake, "*a$t")
    again = reconciler(lake, "import", "live", "-o", "live", "--env", "prod")
    assert (again.code, again.out) == (0, "updated live/overlays/prod/lake/a.yaml\n"), again.err
    assert reconciler(lake, "plan", "live", "--env", "prod", "--detailed-exitcode").code == 0


def test_a_file_with_the_line_ends_of_windows_keeps_them(lake: Path) -> None:
    imported(lake)
    file = lake / "live/lake/a.yaml"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    mend(lake, "*a$t")
    assert imported(lake).out == "updated live/lake/a.yaml\n"
    text = file.read_bytes()
    assert (text.count(b"\n") == text.count(b"\r\n"), b"could not be read" in text) == (True, False)
