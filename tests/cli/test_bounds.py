"""What a manifest repeats without end is not repeated in a message; what may be a password not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write

LONG = {
    "default": f"[{{name: id, type: int64, default: {'9' * 500_000}}}]",
    "type": f'[{{name: id, type: "{"list<" * 10_000}int64{">" * 10_000}"}}]',
    "unknown type": f"[{{name: id, type: {'x' * 500_000}}}]",
    "name": f"[{{name: {'x' * 500_000}, type: int46}}]",
}


@pytest.mark.parametrize("what", LONG)
def test_a_long_value_gives_a_short_message(tmp_path: Path, what: str) -> None:
    write(tmp_path, catalog(), namespace("a"), table("a", "t", schema=LONG[what]))
    shown = reconciler(tmp_path, "validate", "m.yaml")
    as_json = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    applied = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert [r.code for r in (shown, as_json, applied)] == [1, 1, 1]
    for text in (shown.out, as_json.out, applied.err, (tmp_path / "r.json").read_text()):
        assert 0 < len(text) < 8000, len(text)
    assert as_json.json["diagnostics"]


def test_a_long_default_is_short_in_a_plan_for_people(tmp_path: Path) -> None:
    default = "x" * 100_000
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    columns = f"[{{name: id, type: int64}}, {{name: s, type: string, default: {default}}}]"
    write(tmp_path, catalog(), namespace("a"), table("a", "t", schema=columns))
    assert len(reconciler(tmp_path, "plan", "m.yaml").out) < 2000
    assert default in reconciler(tmp_path, "plan", "m.yaml", "--format", "json").out, "a program gets all of it"


SHORT = {"storage__secret_access_key": "9999", "storage__pin": "q7z", "storage__token": "5.4321", "storage__one": "K"}


def test_a_short_literal_secret_is_in_no_plan(tmp_path: Path) -> None:
    write(tmp_path, catalog(**SHORT, storage__allow_http="true", storage__region="${env:R}"), namespace("a"))
    run = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", "--format", "json", env={"R": "r1"})
    assert run.code == 0, run
    spec = json.loads((tmp_path / "p.json").read_text())["catalogs"]["lake"]["spec"]
    assert run.json["catalogs"]["lake"]["spec"] == spec
    for key in SHORT:
        name = f"RECONCILER_LAKE_{key.upper().replace('__', '_')}"
        assert spec[key.replace("__", ".")] == f"${{env:{name}}}"
        assert name in run.err
    assert (spec["storage.allow_http"], spec["storage.region"]) == ("true", "${env:R}")


@pytest.mark.parametrize(
    "value", ["${hunter2secret}", "${env:hunter2secret", "${hunter2", "${env:hunter2 secret}", "${var:hunter2 x}"]
)
def test_a_malformed_reference_in_an_option_is_not_repeated(tmp_path: Path, value: str) -> None:
    write(tmp_path, catalog(storage__k=value), namespace("a"))
    for arguments in (["validate"], ["validate", "--format", "json"], ["plan"], ["apply", "--yes", "--format", "json"]):
        run = reconciler(tmp_path, *arguments, "m.yaml")
        assert run.code == 1
        assert "hunter2" not in run.out + run.err
    shown = reconciler(tmp_path, "validate", "m.yaml").out
    assert "m.yaml:7:14: error[M300]: what " in shown, shown
