"""A plan without changes of Glue tables on moto, beside Terraform's of as many: time, and calls that reached Glue.

With no tables too, because the start-up of both programs is in their time. Ours also opens each dataset and compares
its schema; Terraform's tables have none. Needs `terraform` on the PATH and its AWS provider: from a folder of plugins
that BENCH_TF_PLUGINS names, else from wherever Terraform's own configuration (TF_CLI_CONFIG_FILE) says.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from service_apply import KEYS, seconds_to_apply
from service_hosts import TESTS
from timing import table

sys.path.insert(0, str(TESTS))
from servers.glue_moto import GlueServer

TABLES = int(os.environ.get("BENCH_TABLES", "200"))
TIMES = 2
ACCOUNT = "123456789012"
"""moto's own: without it Terraform would ask STS who it is."""
NO_CHANGES = 0
"""The exit code of `plan -detailed-exitcode` of both programs."""


class Seen(NamedTuple):
    seconds: float
    calls: int


def planned(glue: GlueServer, command: list[str], folder: Path) -> Seen:
    """The fastest of a few runs."""
    runs = []
    for _ in range(TIMES):
        before = sum(glue.calls.values())
        start = time.perf_counter()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        assert done.returncode == NO_CHANGES, done.stdout + done.stderr
        runs.append(Seen(seconds, sum(glue.calls.values()) - before))
    return min(runs)


def ours(tables: int, folder: Path) -> Seen:
    with GlueServer() as glue:
        spec = {"type": "glue", "endpoint": glue.endpoint, "root": str(folder / "lake"), **KEYS}
        seconds_to_apply((lambda _: spec, ["n"]), folder, tables, 8)
        return planned(glue, [sys.executable, "-m", "reconciler", "plan", "m.yaml", "--detailed-exitcode"], folder)


def terraform(tables: int, folder: Path) -> Seen:
    plugins = os.environ.get("BENCH_TF_PLUGINS")
    with GlueServer() as glue:
        (folder / "main.tf.json").write_text(json.dumps(configuration(glue.endpoint, tables), indent=1))
        init = ["init", *([f"-plugin-dir={plugins}"] if plugins else [])]
        # Few at a time: with ten, a create on this fresh server once ended as "already exists" on a busy machine.
        for step in (init, ["apply", "-auto-approve", "-parallelism=2"]):
            done = subprocess.run(["terraform", *step, "-no-color", "-input=false"], cwd=folder, capture_output=True)
            if done.returncode:
                sys.exit(
                    f"terraform {step[0]} failed; if its AWS provider is missing, name a folder of plugins with "
                    f"BENCH_TF_PLUGINS or a mirror with TF_CLI_CONFIG_FILE\n{done.stderr.decode()[-2000:]}"
                )
        return planned(glue, ["terraform", "plan", "-detailed-exitcode", "-no-color", "-input=false"], folder)


def configuration(endpoint: str, tables: int) -> dict[str, Any]:
    aws = {
        "region": KEYS["region"],
        "access_key": KEYS["access_key_id"],
        "secret_key": KEYS["secret_access_key"],
        "endpoints": {"glue": endpoint},
        **dict.fromkeys(("skip_credentials_validation", "skip_requesting_account_id", "skip_metadata_api_check"), True),
    }
    made = {
        f"t{n}": {
            "name": f"t{n}",
            "database_name": "${aws_glue_catalog_database.n.name}",
            "catalog_id": ACCOUNT,
            "table_type": "EXTERNAL_TABLE",
            "parameters": {"table_type": "lance", "tier": "gold"},
            "storage_descriptor": {
                "location": f"s3://lake/n/t{n}",
                "columns": [{"name": "id", "type": "bigint"}, {"name": "embedding", "type": "array<float>"}],
            },
        }
        for n in range(tables)
    }
    resources: dict[str, Any] = {"aws_glue_catalog_database": {"n": {"name": "n", "catalog_id": ACCOUNT}}}
    if made:
        resources["aws_glue_catalog_table"] = made
    return {
        "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws"}}},
        "provider": {"aws": aws},
        "resource": resources,
    }


def row(what: str, plan: Callable[[int, Path], Seen]) -> list[str]:
    cells = [what]
    for tables in (0, TABLES):
        with tempfile.TemporaryDirectory() as folder:
            seen = plan(tables, Path(folder))
        cells += [f"{seen.seconds:.1f} s", str(seen.calls)]
    return cells


if __name__ == "__main__":
    rows = [row("reconciler", ours)]
    if shutil.which("terraform"):
        rows.append(row("terraform", terraform))
    else:
        print("terraform is not on the PATH: its row is missing")
    table(["plan without changes", "0 tables", "calls", f"{TABLES} tables", "calls"], rows)
