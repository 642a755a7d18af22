"""The whole way from the command line, on every catalog service: what the contract suite does piece by piece."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import check_schema, namespace, reconciler, table, write
from contract.backends import BACKENDS, Backend
from contract.conftest import *  # noqa: F403 - the servers' fixtures, whichever there are

pytestmark = pytest.mark.slow
SERVICES = [b for b in BACKENDS if b.name.partition("-")[0] in ("rest", "iceberg", "unity", "glue")]


@pytest.mark.parametrize("backend", SERVICES, ids=lambda b: b.name)
def test_from_validate_to_an_imported_manifest(
    backend: Backend, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    site = backend.make(tmp_path, request.getfixturevalue)
    spec = json.dumps({**site.options, "management": {"owner": "team"}})
    catalog = f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {spec}\n"
    at = (*site.container, "n")
    objects = (namespace(*at, spec="{properties: {team: a}}"), table(*at, "t", spec="properties: {pii: 'no'}"))
    file = write(tmp_path, catalog, *objects)
    folder = tmp_path

    checked = reconciler(folder, "validate", file)
    written_out = sum(key in ("access_key_id", "secret_access_key") for key in site.options)
    assert checked.out.endswith(f"3 documents, 0 errors, {written_out} warnings\n")
    assert checked.out.count("warning[M447]") == written_out
    planned = reconciler(folder, "plan", file, "-o", "plan.json")
    assert planned.code == 0, planned.err
    plan = json.loads((folder / "plan.json").read_text())
    check_schema("plan", plan)
    assert [s["action"] for s in plan["steps"]] == ["create_namespace", "declare_table", "create_dataset"]
    applied = reconciler(folder, "apply", file, "--yes", "--format", "json")
    assert (applied.code, applied.json["outcome"]) == (0, "applied"), applied.err
    assert reconciler(folder, "drift", file).code == 0

    alone = write(tmp_path, catalog, name="alone.yaml")
    imported = reconciler(folder, "import", alone, "-o", "imported")
    assert imported.code == 0, imported.err
    again = reconciler(folder, "plan", "imported", "--detailed-exitcode", env=_given(site.options))
    assert again.code == 0, again.out + again.err
    text = "".join(p.read_text() for p in (folder / "imported").rglob("*.yaml"))
    assert "pii: 'no'" in text
    assert all(str(list(ident)).replace("'", "") in text for ident in (at, (*at, "t")))


def _given(options: dict[str, object]) -> dict[str, str]:
    """Secrets that are written out in the manifest become references in what is imported."""
    from reconciler.engine.redact import reference_for

    return {reference_for("lake", key)[len("${env:") : -1]: str(value) for key, value in options.items()}
