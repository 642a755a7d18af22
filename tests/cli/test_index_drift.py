"""A live index that is not as declared, from the command line: exit codes, and what is printed is live."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from cli.cli_runs import catalog, reconciler, table, write

SCHEMA = "[{name: id, type: int64}, {name: v, type: 'fixed_size_list<float32>[8]'}]"


def declare(folder: Path, partitions: int) -> None:
    params = f"{{metric: l2, num_partitions: {partitions}}}"
    spec = f"indexes: [{{column: v, type: ivf_flat, params: {params}}}]"
    write(folder, catalog(), table("t", schema=SCHEMA, spec=spec))


def lake(folder: Path) -> str:
    write(folder, catalog(), table("t", schema=SCHEMA))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    values = np.random.default_rng(0).standard_normal(400 * 8).astype("float32")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 8)
    rows = pa.table({"id": pa.array(range(400), pa.int64()), "v": vectors})
    uri = str(folder / "lake" / "t.lance")
    lance.write_dataset(rows, uri, mode="append")
    declare(folder, 4)
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    return uri


def retrain(uri: str, partitions: int) -> None:
    given = {"name": "v_idx", "metric": "l2", "num_partitions": partitions, "replace": True}
    lance.dataset(uri).create_index("v", "IVF_FLAT", **given)


def test_a_retrained_index_is_drift_and_is_repaired(tmp_path: Path) -> None:
    uri = lake(tmp_path)
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    retrain(uri, 2)
    plan = reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode")
    assert (plan.code, "~ index v_idx: num_partitions 2 -> 4\n" in plan.out) == (2, True), plan.out
    assert reconciler(tmp_path, "drift", "m.yaml").code == 2
    declare(tmp_path, 12)
    assert "num_partitions 2 -> 12\n" in reconciler(tmp_path, "plan", "m.yaml").out
    (step,) = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json["steps"]
    assert (step["action"], step["verdict"], step["risk"]) == ("replace_index", "allowed", "safe")
    assert step["before"]["params"]["num_partitions"] == 2
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert len(lance.dataset(uri).get_ivf_model("v_idx").centroids) == 12
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


def test_every_format_shows_the_step_and_a_saved_plan_runs(tmp_path: Path) -> None:
    uri = lake(tmp_path)
    retrain(uri, 2)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    for format_ in ("text", "markdown", "html", "json"):
        shown = reconciler(tmp_path, "show", "p.json", "--format", format_)
        assert shown.code == 0
        assert "v_idx" in shown.out
    assert json.loads((tmp_path / "p.json").read_text())["format_version"] == "1.0"
    done = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert [s["action"] for s in done.json["steps"]] == ["replace_index"]
    assert len(lance.dataset(uri).get_ivf_model("v_idx").centroids) == 4
    tags = lance.dataset(uri).tags.list()
    assert tags == {}, "nothing is lost, so no version is kept"


def test_a_plan_of_an_earlier_version_that_records_definitions_is_read(tmp_path: Path) -> None:
    from reconciler.model.change import UpdateDataset
    from reconciler.model.plan_json import change_from_json

    after = {"config": {}, "schema_metadata": {}, "fields": {}, "owner": "us", "applied": [], "indexes": None}
    assert change_from_json("update_table", "Table", ("t",), after) == UpdateDataset(("t",), {}, {}, {}, "us", ())
