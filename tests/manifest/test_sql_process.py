"""SQL that ends the process which compiles it, or takes all its time or memory, is an error at its place."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from reconciler.app import Reading, validate
from reconciler.catalog.sql_process import SqlCompiler
from reconciler.model.arrow import Field, parse_type

from .support import CATALOG, places, table

FIELDS = (Field("id", parse_type("int64")),)
ENDS = {
    "a long chain": "+".join(["a"] * 4000) + " > 1",
    "a constant list": "arrow_cast(NULL, 'FixedSizeList(2000000000, Int64)') IS NULL",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_what_ends_the_compiler_is_an_error_at_its_place(tmp_path: Path, name: str) -> None:
    """And what comes after it is compiled all the same."""
    checks = f'checks: {{expressions: [{{name: a, sql: "{ENDS[name]}"}}, {{name: b, sql: "lenght(a) > 1"}}]}}\n'
    (tmp_path / "m.yaml").write_text(
        f"{CATALOG}---\n{table('t', 'schema: [{name: a, type: int64}]' + chr(10) + checks)}"
    )
    loaded = validate([str(tmp_path)], Reading())
    assert [d.code for d in loaded.diagnostics] == ["M453", "M453"]
    assert [line for line, _ in places(loaded, "M453")] == [11, 11]
    assert "Did you mean 'length'" in loaded.diagnostics[1].message


@pytest.mark.slow
def test_one_that_takes_no_end_is_stopped() -> None:
    """A child that is stopped (SIGSTOP) answers as little as one that computes for hours; the next one is new."""
    with SqlCompiler(seconds=0.5) as compiler:
        assert compiler(FIELDS, ["id > 1"], []) == [None]
        child = compiler._child
        assert child is not None
        os.kill(child.pid, signal.SIGSTOP)
        compiler._ask = _without_table(compiler)  # type: ignore[method-assign]
        told = compiler(FIELDS, ["id > 1"], [])
        assert told[0] is not None
        assert "not compiled within 0.5 seconds" in told[0]
        assert child.poll() is not None, "it is not left behind"


def _without_table(compiler: SqlCompiler):  # type: ignore[no-untyped-def]
    def ask(request):  # type: ignore[no-untyped-def]
        yield True
        assert compiler._line(0.5) is None
        yield compiler._why_ended()

    return ask


def test_no_process_is_started_without_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqlCompiler, "_started", lambda self: pytest.fail("nothing is to be compiled"))
    (tmp_path / "m.yaml").write_text(CATALOG)
    assert validate([str(tmp_path)], Reading()).diagnostics == []
