"""What comes from outside begins no line: the same run with hostile names, values and messages has as many lines in
every channel as one with harmless ones, and none of them is what the attacker wrote."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import lance_namespace as ln
import pyarrow as pa
import pytest
from cli_runs import Run, catalog, namespace, reconciler, table, write
from lance.namespace import DirectoryNamespace
from servers.proxy import Exchange, Proxy, answer
from servers.rest_adapter import RestServers, rest_adapter

from reconciler.cli.arguments import parser
from reconciler.cli.output import Output
from reconciler.engine.progress import Lines

__all__ = ["rest_adapter"]
SEPARATORS = {
    "LF": "\n", "CR": "\r", "CRLF": "\r\n", "VT": "\x0b", "FF": "\x0c", "FS": "\x1c", "GS": "\x1d", "RS": "\x1e",
    "NEL": "\x85", "LS": "\u2028", "PS": "\u2029", "erase line": "\x1b[2K\r", "title": "\x1b]0;x\x07\n",
    "override": "\u202e\n\u2066", "two ends": "\n\n",
}  # fmt: skip
FORGED = ("::error::pwn", "Plan: 0 to create", "done", "error: forged", "No changes", "applied", "##[error]pwn")
HARMLESS = "w"
ALIKE = {"LF": "\t", "NEL": "\x81", "LS": "\ufff9", "erase line": "\x1b\x01", "override": "\t"}
"""What is as unfit for the name of an object or of a file, and ends no line."""
STEERING = {*"\x00\x07\x08\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\u202e\u2066\r\x1b"}


def hostile(separator: str) -> str:
    return "w" + separator + separator.join(FORGED)


def lines_of(text: str) -> list[str]:
    """As any reader may split it: `str.splitlines` knows every separator."""
    return text.splitlines()


def assert_not_forged(text: str, where: str) -> None:
    assert not STEERING & set(text), f"{where}: {sorted(map(ascii, STEERING & set(text)))}"
    assert "##[" not in text or where.endswith(".yaml"), where  # A manifest is exact, and no log.
    for line in lines_of(text):
        assert line.strip().lstrip("#|>*- ") not in FORGED, f"{where}: {line}"
        assert not line.lstrip().startswith("::"), f"{where}: {line}"


def outsider(root: Path, word: str) -> None:
    """Objects of somebody else, full of the word: names, properties, columns, owners."""
    theirs = DirectoryNamespace(root=str(root))
    theirs.create_namespace(ln.CreateNamespaceRequest(id=[f"n{word}"], properties={f"k{word}": f"v{word}"}))
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["o"], properties={"reconciler.owner": f"o{word}"}))
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["a"], properties={"note": f"v{word}", f"k{word}": "x"}))
    fields = [pa.field("id", pa.int64()), pa.field(f"c{word}", pa.string(), metadata={"comment": f"m{word}"})]
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, pa.schema(fields)) as writer:
        writer.write_batch(pa.record_batch([pa.array([1]), pa.array(["x"])], schema=pa.schema(fields)))
    idents = [["a", "t"], [f"n{word}", f"t{word}"]]
    for ident in idents if "\x1b" not in word else idents[:1]:  # Lance cannot write to such a path.
        theirs.create_table(ln.CreateTableRequest(id=ident), stream.getvalue())


def lake(folder: Path, word: str) -> Path:
    folder.mkdir()
    write(folder, catalog(), name="c.yaml")
    write(
        folder,
        catalog(),
        namespace("a", spec="{properties: {note: ours}}"),
        namespace("o", spec="{properties: {note: ours}}"),
        table("a", "t", spec=f"description: {json.dumps(f'd{word}')}"),
        namespace("new", spec=json.dumps({"properties": {"note": f"v{word}"}})),
    )
    (folder / "lake").mkdir()
    outsider(folder / "lake", word)
    return folder


COMMANDS: dict[str, tuple[str, ...]] = {
    **{f"plan {f}": ("plan", "m.yaml", "--format", f) for f in ("text", "markdown", "html", "sarif", "junit", "json")},
    **{f"adopt {f}": ("plan", "m.yaml", "--adopt", "--format", f) for f in ("text", "markdown", "junit")},
    "drift": ("drift", "m.yaml", "--metrics-file", "m.prom"),
    **{f"status {how}": ("status", "m.yaml", "--format", how) for how in ("text", "markdown", "json")},
    "import": ("import", "c.yaml", "-o", "live"),
    "import again": ("import", "c.yaml", "m.yaml", "-o", "."),
    "import, only shown": ("import", "c.yaml", "-o", "live", "--dry-run"),
    "import, the rest": ("import", "c.yaml", "-o", "live", "--only-unmanaged", "--split", "table"),
    "apply": ("apply", "m.yaml", "--yes", "--adopt", "--report", "r.json", "--log-level", "debug"),
    "apply as json": ("apply", "m.yaml", "--yes", "--log-format", "json", "--format", "json"),
    "debug": ("plan", "m.yaml", "--debug", "--log-level", "debug"),
    "unlock": ("unlock", "m.yaml"),
    "verdicts": ("apply", "m.yaml", "--yes", "--format", "markdown", "--take-over", "somebody"),
}
ENV = {"RECONCILER_TERMINATION_LOG": "last-words"}


def ran(folder: Path, word: str, words: tuple[str, ...]) -> dict[str, str]:
    run: Run = reconciler(lake(folder, word), *words, env={**ENV, "GITLAB_USER_LOGIN": f"by{word}", "GITLAB_CI": "1"})
    told = {"stdout": run.out, "stderr": run.err}
    kept = [p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] != "lake"]
    written = [p for p in kept if p.suffix in ("", ".prom", ".json", ".jsonl") or "live" in p.parts]
    return told | {p.name: p.read_text() for p in written}


def _without_debug(text: str) -> list[str]:
    """Libraries log a different number of lines from run to run."""
    return [line for line in lines_of(text) if not line.startswith(("DEBUG", "INFO"))]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("separator", ["LF", "NEL", "LS", "erase line", "override"])
def test_hostile_objects(tmp_path: Path, name: str, separator: str) -> None:
    words = COMMANDS[name]
    attacked = ran(tmp_path / "two", hostile(SEPARATORS[separator]), words)
    harmless = ran(tmp_path / "one", hostile(ALIKE[separator]), words)
    for where, text in attacked.items():
        assert_not_forged(text, f"{name}: {where}")
    for where in ("stdout", "stderr", "m.prom", "last-words"):
        before, after = (_without_debug(told.get(where, "")) for told in (harmless, attacked))
        if "html" not in name and "sarif" not in name and "json" not in name:
            assert len(after) == len(before), f"{name}: {where}\n" + "\n".join(after)
    for where, text in attacked.items():
        documents = [text] if where.endswith(".json") else text.splitlines() if where.endswith(".jsonl") else []
        assert all(json.loads(document) for document in documents), where


@pytest.mark.parametrize("separator", SEPARATORS)
def test_what_is_said_logged_and_raised(separator: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is one line, whatever is in it; a traceback has as many as that of a harmless exception."""

    def told(word: str) -> list[str]:
        out = Output(debug=True)
        out.set_up_logging("warning")
        out.say(f"note: {word}")
        out.say(f"{word}")
        out.say_lines([f"one {word}", f"two {word}"])
        logging.getLogger("library").warning("said %s", word)
        try:
            try:
                raise KeyError(word)
            except KeyError as error:
                failure = ValueError(word)
                failure.add_note(word)
                raise failure from error
        except ValueError as error:
            logging.getLogger("library").exception("failed %s", word)
            out.traceback(error)
            out.traceback(ExceptionGroup(word, [error]))
        Lines(sys.stderr, out.session.shown, iter(range(0, 100, 10)).__next__).update(1, 2, [word])
        with pytest.raises(SystemExit):
            parser().parse_args(["plan", "m.yaml", "--format", word])
        shown = capsys.readouterr().err
        out.session.close()
        return lines_of(shown)

    before = logging.getLogger().handlers[:]
    try:
        harmless, attacked = told(HARMLESS), told(hostile(SEPARATORS[separator]))
    finally:
        logging.getLogger().handlers[:] = before
    assert len(attacked) == len(harmless), "\n".join(attacked)
    assert_not_forged("\n".join(attacked), separator)


@pytest.mark.parametrize("separator", ["LF", "CR", "NEL", "PS"])
def test_an_internal_error(tmp_path: Path, separator: str) -> None:
    write(tmp_path, catalog(), namespace("a"))

    def run(word: str, *more: str) -> list[str]:
        with patch("reconciler.app.plan", side_effect=RuntimeError(f"lost {word}")):
            return lines_of(reconciler(tmp_path, "plan", "m.yaml", "--debug", *more).err)

    for more in ((), ("--log-format", "json"), ("--format", "markdown")):
        harmless, attacked = run(HARMLESS, *more), run(hostile(SEPARATORS[separator]), *more)
        assert any("RuntimeError" in line for line in attacked)
        assert len(attacked) == len(harmless), "\n".join(attacked)
        assert_not_forged("\n".join(attacked), separator)


@pytest.fixture
def proxy(rest_adapter: RestServers, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(rest_adapter.serve(tmp_path / "served")) as found:
        spec = {"type": "rest", "uri": found.endpoint, "max_retries": 0, "management": {"owner": "team"}}
        head = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        write(tmp_path, f"{head}spec: {json.dumps(spec)}\n", namespace("a"), table("a", "t"))
        write(tmp_path, f"{head}spec: {json.dumps(spec)}\n", name="c.yaml")
        yield found


FAILING = [
    ("/list", ("plan", "m.yaml")),
    ("/list", ("plan", "m.yaml", "--format", "markdown")),
    ("/list", ("plan", "m.yaml", "--format", "junit")),
    ("/list", ("import", "c.yaml", "-o", "live")),
    ("/list", ("status", "m.yaml")),
    ("/describe", ("drift", "m.yaml", "--debug")),
    ("/create|/declare|/register", ("apply", "m.yaml", "--yes", "--report", "r.json")),
    ("/create|/declare|/register", ("apply", "m.yaml", "--yes", "--format", "markdown")),
    ("/create|/declare|/register", ("apply", "m.yaml", "--yes", "--format", "json", "--log-format", "json")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "words"), FAILING)
@pytest.mark.parametrize("separator", ["LF", "NEL", "override"])
def test_hostile_messages_of_a_service(
    tmp_path: Path, proxy: Proxy, path: str, words: tuple[str, ...], separator: str
) -> None:
    def run(word: str) -> dict[str, str]:
        async def act(exchange: Exchange) -> None:
            await answer(403, json.dumps({"error": word, "code": 15, "detail": word, "type": word}))(exchange)

        proxy.fault(act, path=path, times=None)
        done = reconciler(tmp_path, *words, env=ENV)
        assert done.code != 0 or "/describe" in path
        return {"stdout": done.out, "stderr": done.err, "last": (tmp_path / "last-words").read_text()}

    harmless, attacked = run(HARMLESS), run(hostile(SEPARATORS[separator]))
    for where, text in attacked.items():
        assert len(lines_of(text)) == len(lines_of(harmless[where])), f"{where}: {text}"
        assert_not_forged(text, where)


@pytest.mark.parametrize("separator", ["LF", "CR", "LS"])
def test_names_of_files_and_saved_documents(tmp_path: Path, separator: str) -> None:
    """A pull request names its files; a plan, a report and a journal come from elsewhere."""
    word = hostile(SEPARATORS[separator]).replace("/", "-")
    folder = lake(tmp_path / "x", HARMLESS)
    (folder / f"{word}.yaml").write_text("kind: Nonsense\n")
    for how in ("text", "markdown", "junit", "sarif", "json", "html"):
        run = reconciler(folder, "validate", f"{word}.yaml", "--format", how)
        assert run.code == 1
        assert_not_forged(run.out + run.err, how)
    write(folder, catalog(), namespace("b"))
    assert reconciler(folder, "plan", "m.yaml", "-o", "p.json").code == 0
    saved = json.loads((folder / "p.json").read_text())
    text = json.dumps(saved).replace('"reason": "', json.dumps(word)[:-1].replace('"', '"reason": "', 1))
    (folder / "q.json").write_text(text)
    for file in ("q.json", f"{word}.yaml"):
        for command in (("show", file), ("apply", "--plan", file, "--yes"), ("graph", "--plan", file)):
            run = reconciler(folder, *command)
            assert_not_forged(run.out + run.err, f"{command}")
