"""Apache's server with real files: it writes `metadata/` into the folder of every Lance dataset, as many servers do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from contract.lake import namespace, table
from iceberg_rig import Rig, iceberg_rest
from servers.iceberg_rest import IcebergRest

from reconciler.catalog.base import WriteContext
from reconciler.model.plan import Plan

__all__ = ["iceberg_rest"]
pytestmark = pytest.mark.slow
N, T = ("wh", "n"), ("wh", "n", "t")
HOME = namespace(N)
GONE = [HOME, table(T, state="absent")]


def there(**properties: str) -> list[dict[str, object]]:
    return [HOME, table(T, {"id": "int64"}, properties=properties)]


@pytest.fixture(params=["{}", "file://{}"], ids=["path", "uri"])
def filed(iceberg_rest: IcebergRest, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    made = Rig(iceberg_rest, tmp_path, files=True, root=request.param.format(tmp_path / "data"))
    yield made
    made.close()


def place(rig: Rig) -> Path:
    return rig.folder.joinpath("data", *T)


def records(rig: Rig) -> int:
    """What the server itself has written about the table."""
    return len(list((place(rig) / "metadata").glob("*.metadata.json")))


def actions(plan: Plan) -> list[tuple[str, str]]:
    return [(s.action, s.verdict) for s in plan.steps]


def test_a_table_lives_beside_the_servers_metadata(filed: Rig) -> None:
    assert filed.run(filed.write(*there(k="1"))).outcome == "applied"
    assert records(filed) == 1, "or this server is not what the test is about"
    assert filed.plan(filed.write(*there(k="1"))).steps == ()
    assert filed.run(filed.write(*there(k="2"))).outcome == "applied"
    assert records(filed) == 2
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(place(filed)), mode="append")
    assert filed.plan(filed.write(*there(k="2"))).steps == ()

    assert filed.run(filed.write(*GONE)).outcome == "applied"
    assert filed.outsider.entries() == {}
    assert lance.dataset(str(place(filed))).to_table()["id"].to_pylist() == [1, 2, 3]
    assert filed.plan(filed.write(*GONE)).steps == ()

    back = filed.plan(filed.write(*there(k="2")))
    assert actions(back) == [("declare_table", "allowed")], "attached to its data, not created beside it"
    assert filed.apply(back).outcome == "applied"
    assert records(filed) == 3
    assert filed.plan(filed.write(*there(k="2"))).steps == ()
    assert lance.dataset(str(place(filed))).to_table()["id"].to_pylist() == [1, 2, 3]


def test_a_table_that_is_declared_only_is_finished_gone_or_adopted(filed: Rig) -> None:
    """Nothing but the server's metadata and our mark is there: neither data nor somebody else's."""
    whole = filed.write(*there())
    filed.run(filed.write(HOME))
    declared, written = filed.plan(whole).steps
    assert [declared.action, written.action] == ["declare_table", "create_dataset"]
    filed.catalog.apply(declared.change, WriteContext("sha256:x", declared.id))
    assert (records(filed), (place(filed) / "_versions").exists()) == (1, False)
    assert actions(filed.plan(whole)) == [("create_dataset", "allowed")]
    assert filed.run(filed.write(*GONE)).outcome == "applied"
    assert records(filed) == 1, "it stays behind"
    assert actions(filed.plan(whole)) == [("declare_table", "allowed"), ("create_dataset", "allowed")]
    filed.outsider.put_table(T, filed.root + "/wh/n/t", {})
    assert {v for _, v in actions(filed.plan(whole))} == {"blocked"}, "it is theirs"
    assert filed.apply(filed.plan(whole, adopt=True)).outcome == "applied"
    assert filed.plan(whole).steps == ()
    assert lance.dataset(str(place(filed))).schema.names == ["id"]


def test_a_table_of_iceberg_itself_is_not_made_a_lance_table(filed: Rig) -> None:
    """Somebody's files in that folder: only what a companion table has there is nobody's data."""
    filed.run(filed.write(HOME))
    (place(filed) / "metadata").mkdir(parents=True)
    (place(filed) / "metadata" / "snap-1.avro").write_text("")
    whole = filed.write(*there())
    assert {v for _, v in actions(filed.plan(whole))} == {"blocked"}
    assert filed.run(whole).outcome == "refused"
    assert filed.outsider.entries() == {}
