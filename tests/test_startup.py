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


def test_sigterm_is_handled_before_anything_of_ours_is_loaded() -> None:
    """The first process of a container is not ended by a signal that it does not handle."""
    script = (
        "import signal, sys\n"
        "class Watch:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'reconciler.cli':\n"
        "            print(signal.getsignal(signal.SIGTERM) is signal.default_int_handler)\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Watch())\n"
        "from reconciler.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-u", "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "True\n", "")
