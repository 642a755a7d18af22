"""Rows of others in a table that a real Spark fills and checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.filled_table import APPEND, EACH, REPLACE, filled
from pipeline.one_session import one_session

__all__ = ["one_session"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.mark.parametrize("name", ["dir-v1", "rest", "glue"])
@pytest.mark.parametrize(("mode", "word"), [(APPEND, "mix_rows"), (REPLACE, "purge_data")])
def test_a_life_with_others(tmp_path: Path, request: pytest.FixtureRequest, mode: str, word: str, name: str) -> None:
    t = filled(tmp_path, request.getfixturevalue, name, mode, on_spark=True)
    t.need_settled()
    t.append(100)
    t.source(2)
    assert t.blocked()[0] == f"allow:{word}"
    t.apply(code=3)
    assert t.ids() == [*range(2 * EACH), *range(100, 110)]
    assert (t.origin() or (None,))[0] is False
    t.apply("--allow", "purge_data")
    assert t.ids() == list(range(3 * EACH))
    t.need_settled()
    t.spec["maintenance"] = {"compact": {"minSmallFragments": 2}}
    assert t.run("pipeline", "maintain", "m.yaml").code == 0
    t.need_settled()
    t.overwrite(200)
    assert t.blocked()[0] == "allow:purge_data"
