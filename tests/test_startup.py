"""`reconciler --help` and `validate` answer at once: they load no library that they do not use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent

CATALOG_LIBRARIES = {"lance", "pyarrow", "numpy", "boto3", "botocore", "obstore", "pyspark", "pandas", "sqlglot"}
MANIFEST_LIBRARIES = {"yaml", "jsonschema", "jsonschema_rs", "pydantic"}


def loaded_by(*arguments: str) -> set[str]:
    """Top-level modules that a command loads, by Python's own account of its imports."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "reconciler", *arguments],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = result.stderr.splitlines()
    others = [line for line in lines if not line.startswith("import time:")]
    assert result.returncode == 0, "\n".join([*others, result.stdout])
    return {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in lines if line.startswith("import time:")}


def test_help_loads_no_library_at_all() -> None:
    loaded = loaded_by("--help")
    assert "argparse" in loaded
    assert not loaded & (CATALOG_LIBRARIES | MANIFEST_LIBRARIES)


def test_validate_loads_no_catalog_library() -> None:
    loaded = loaded_by("validate", "manifests-example")
    assert "yaml" in loaded
    assert not loaded & CATALOG_LIBRARIES
