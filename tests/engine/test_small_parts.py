"""Redaction, observation, globs, selection, atomic files, progress."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from engine_plans import lake, ns, plan, table

from reconciler.core.globs import matches
from reconciler.engine.advice import way_to
from reconciler.engine.explain import mismatch
from reconciler.engine.files import write_atomically
from reconciler.engine.observe import observe
from reconciler.engine.outcome import SIGNAL, TIMEOUT, report_of
from reconciler.engine.progress import EVERY, Lines, Terminal
from reconciler.engine.redact import MASK, Redactor, literal_secrets, without_literal_secrets
from reconciler.engine.run_step import Ended
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import AddColumns
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code
from reconciler.model.observed import Gap, Present, Scope, Unreadable
from reconciler.model.report import StepResult
from reconciler.model.state import DatasetState, Marks, TableState

NEW = (Field("new", parse_type("int8")), Field("another", parse_type("int8")))


@pytest.mark.parametrize(
    "secret", ["plainsecret", 'with"quote', "back\\slash", "per/cent %+&", "two\nlines", "ünïcode"]
)
def test_a_secret_is_hidden_in_every_form(secret: str) -> None:
    redactor = Redactor([secret])
    for text in (secret, json.dumps({"x": secret}), repr(secret), f"http://h/?q={secret}", secret.encode().hex()):
        shown = redactor.text(text)
        assert secret not in shown
        assert json.dumps(secret)[1:-1] not in shown
    assert redactor.value({"a": [secret, {secret: 1}], "n": 5}) == {"a": [MASK, {MASK: 1}], "n": 5}


def test_common_words_are_not_hidden() -> None:
    redactor = Redactor(["true", "1", "abc", "8080", ""])
    assert redactor.text("true 1 abc 8080") == "true 1 abc 8080"


def test_the_longer_of_two_secrets_goes_first() -> None:
    assert Redactor(["secret", "secret-and-more"]).text("x secret-and-more") == f"x {MASK}"


def test_the_password_in_a_url_is_hidden_on_its_own_too() -> None:
    redactor = Redactor(["https://user:pass%2Fword@host:9000/x", "http://[::1"])
    for text in ("user:pass%2Fword", "password pass/word", "https://user:pass%2Fword@host:9000/x/y"):
        assert "pass" not in redactor.text(text).replace("password", "")
    assert redactor.text("user at host:9000") == "user at host:9000"


def test_specs_are_written_down_without_literal_secrets() -> None:
    options = {
        "path": "s3://x", "storage.key": "literal", "storage.ref": "${env:A}", "storage.two": "${env:A}${file:/b}",
        "storage.mixed": "x-${env:A}", "storage.default": "${env:A:-literal}", "storage.allow_http": "true",
    }  # fmt: skip
    spec = CatalogSpec("my-lake", "dir", options, Management(), Source("m.yaml"))
    secret = lambda key: key.startswith("storage.")  # noqa: E731
    assert literal_secrets(spec, secret) == ["storage.default", "storage.key", "storage.mixed"]
    public = without_literal_secrets(spec, secret).options
    assert public["storage.key"] == "${env:RECONCILER_MY_LAKE_STORAGE_KEY}"
    assert {k: public[k] for k in options if k not in literal_secrets(spec, secret)} == {
        k: v for k, v in options.items() if k not in literal_secrets(spec, secret)
    }


def test_ignored_objects_are_not_reported_but_keep_their_parent_from_being_empty() -> None:
    catalog = lake(ns("a"), *table("a", "t"), ns("scratch"), *table("scratch", "x"))
    snapshot = observe(catalog, Scope(ignore=("scratch.*",)))
    assert list(snapshot.namespaces) == [("a",), ("scratch",)]
    assert list(snapshot.tables) == [("a", "t")]
    assert snapshot.hidden == {("scratch", "x")}


def test_a_place_that_is_ignored_and_unreadable_still_is_there() -> None:
    catalog = lake(ns("a"))
    catalog.gaps = (Gap(("a", "scratch"), Code.INTERNAL, "no"),)
    snapshot = observe(catalog, Scope(ignore=("a.scratch",)))
    assert snapshot.gaps == ()
    assert snapshot.hidden == {("a", "scratch")}


def test_what_a_library_said_is_cleaned() -> None:
    catalog = lake(ns("a"))
    catalog.gaps = (Gap(("b",), Code.INTERNAL, "token=hushhush"),)
    catalog.world.namespaces["c",] = Unreadable(Code.INTERNAL, "hushhush")
    snapshot = observe(catalog, Scope(), clean=Redactor(["hushhush"]).text)
    assert snapshot.gaps[0].message == f"token={MASK}"
    assert snapshot.namespaces["c",] == Unreadable(Code.INTERNAL, MASK)


GLOBS = {
    ("a.b", ("a", "b")): True,
    ("a", ("a", "b")): False,
    ("a.*", ("a", "b")): True,
    ("a.*", ("a", "b", "c")): False,
    ("a.*", ("a", "x.y")): True,
    ("a.**", ("a", "b", "c")): True,
    ("a.**", ("a",)): True,
    ("**", ("a", "b")): True,
    ("**.tmp_*", ("a", "b", "tmp_1")): True,
    ("*.b", ("a", "b")): True,
    ("a.?", ("a", "b")): True,
    ("a.?", ("a", "bb")): False,
    ("a.[b]", ("a", "b")): False,
    ("a+", ("aa",)): False,
}


@pytest.mark.parametrize("case", GLOBS, ids=str)
def test_globs(case: tuple[str, tuple[str, ...]]) -> None:
    assert matches(*case) is GLOBS[case]


def test_files_are_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_atomically(link, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o600, True)
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half \ud800")
    assert path.read_text() == "new"
    with pytest.raises(OSError, match="No such file"):
        write_atomically(tmp_path / "no" / "r.json", "x")
    assert sorted(os.listdir(tmp_path)) == ["link", "r.json"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_quiet_progress_lines_every_few_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Lines(stream, str, clock)
    progress.update(0, 9, ["lake:a"])
    assert stream.getvalue() == ""
    clock.now = EVERY
    progress.update(3, 9, ["lake:a", "lake:b", "lake:c", "lake:d"])
    progress.update(4, 9, [])
    assert stream.getvalue() == "3/9 steps, 5 s: lake:a, lake:b, lake:c and 1 more\n"


def test_terminal_progress_leaves_nothing_behind() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Terminal(stream, str, clock)
    clock.now = 1.0
    progress.update(1, 2, ["lake:a"])
    progress.close()
    assert stream.getvalue() == "\r\x1b[2K1/2 steps, 1 s: lake:a\r\x1b[2K"


def test_progress_survives_a_closed_stream() -> None:
    stream = io.StringIO()
    progress = Terminal(stream, str, lambda: 5.0)
    stream.close()
    progress.update(1, 2, [])
    progress.close()
    assert stream.closed


@pytest.mark.parametrize(
    ("code", "path", "options", "said"),
    [
        (Code.SERVICE_UNAVAILABLE, "s3://b/l", {}, "endpoint (none in storage.*"),
        (
            Code.UNAUTHENTICATED,
            "s3://b/l",
            {"storage.aws_session_token": "x"},
            "credentials in storage.aws_session_token",
        ),
        (Code.THROTTLING, "gs://b/l", {"storage.endpoint": "x"}, "endpoint in storage.endpoint,"),
        (Code.INTERNAL, "s3://b/l", {"storage.endpoint": "x"}, ""),
        (Code.PERMISSION_DENIED, "./lake", {}, ""),
    ],
)
def test_advice_names_options_where_the_way_is_broken(
    code: Code, path: str, options: dict[str, str], said: str
) -> None:
    spec = CatalogSpec("lake", "dir", {"path": path, **options}, Management(), Source("m.yaml"))
    advice = way_to(spec, code)
    assert said in advice
    assert bool(advice) is bool(said)


def test_what_differs_is_seen_however_long_the_texts_are() -> None:
    long = tuple(Field(f"column_{n}", parse_type("int64")) for n in range(30))
    before = Present(TableState("/t", {}, Marks("us"), DatasetState(long, owner="us")))
    live = Present(TableState("/t", {}, Marks("us"), DatasetState((*long, *NEW[:1]), owner="us")))
    said = mismatch(before, AddColumns(("t",), NEW), live)
    shown, _, wanted = said.partition(" instead of ")
    assert "another" not in shown
    assert "another" in wanted
    assert len(said) < 300


def test_what_did_not_run_is_not_applied() -> None:
    """Whatever kept it: a step that may run and did not is no success, and exit code 0 is only for that."""
    made = plan(lake().world, [ns("a")])
    assert [s.verdict for s in made.steps] == ["allowed"]
    assert [report_of(made, {}, halt).outcome for halt in (None, SIGNAL, TIMEOUT)] == [
        "failed",
        "interrupted",
        "failed",
    ]
    done = {made.steps[0].id: Ended(StepResult(made.steps[0], "done"))}
    assert report_of(made, done, None).outcome == "applied"
