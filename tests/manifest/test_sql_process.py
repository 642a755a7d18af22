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
def test_without_a_schema_sql_that_names_no_column_is_compiled(tmp_path: Path) -> None:
    """The rest waits for the live columns: `id` may be of any type."""
    listed = [ENDS["a constant list"], "lenght('a') > 1", "lenght(id) > 1", "length('a') > 1"]
    checks = "".join(f'\n    - {{name: c{n}, sql: "{sql}"}}' for n, sql in enumerate(listed))
    (tmp_path / "m.yaml").write_text(f"{CATALOG}---\n{table('t', 'checks:' + chr(10) + '  expressions:' + checks)}")
    loaded = validate([str(tmp_path)], Reading())
    assert [line for line, _ in places(loaded, "M453")] == [12, 13]
    assert "ends the process that compiles it" in loaded.diagnostics[0].message


SLOW = "levenshtein(repeat('a',1000000), repeat('b',1000000)) = id"


@pytest.mark.slow
def test_all_sql_together_has_a_budget() -> None:
    """However many tables it is in; plain expressions cost nothing of it, and one that is not tried says why."""
    with SqlCompiler(seconds=1.5, budget=2.0) as compiler:
        assert compiler(FIELDS, ["id > 1"] * 40, []) == [None] * 40
        told = [
            *compiler(FIELDS, [SLOW], []),
            *compiler(FIELDS, [SLOW, "id > 1"], []),
            *compiler(FIELDS, ["id > 2"], []),
        ]
        assert compiler._child is None
    assert told[0] is not None
    assert "not compiled within 1.5 seconds" in told[0]
    for why in told[1:]:
        assert why is not None
        assert why.startswith("all SQL together has 2 seconds to be compiled, and they are spent, ")
        assert f" of them on {SLOW!r}: " in why
        assert why.endswith("Make it shorter")


@pytest.mark.slow
def test_a_child_that_has_to_be_started_again_is_paid_for() -> None:
    with SqlCompiler(budget=0.2) as compiler:
        told = compiler(FIELDS, [ENDS["a constant list"], *["id > 1"] * 3], [])
    assert told[0] is not None
    assert told[-1] is not None
    assert "they are spent" in told[-1]


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
