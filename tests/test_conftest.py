"""CI=true turns skipped tests into failures: shown by running pytest on small files with the real conftest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SKIPS = """
import pytest

@pytest.fixture
def java():
    pytest.skip("needs java 1")

def test_in_fixture(java): pass

def test_in_body():
    pytest.skip("needs java 2")

@pytest.mark.skipif(True, reason="needs java 3")
def test_by_mark(): pass

@pytest.mark.xfail
def test_expected_failure(): assert False

def test_passes(): pass
"""


def run_pytest(folder: Path, source: str, ci: str) -> subprocess.CompletedProcess[str]:
    for name in ("conftest.py", "examples.py"):
        shutil.copy(Path(__file__).with_name(name), folder)
    (folder / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder)]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environ |= {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, cwd=folder, check=False)


def test_in_ci_every_skip_is_a_failure_that_gives_its_reason(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, SKIPS, ci="true")
    assert result.returncode == 1, result.stdout
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in result.stdout, "a skip in the set-up is an error"
    assert all(f"needs java {n}" in result.stdout for n in (1, 2, 3))
    assert "nothing may be skipped when CI=true" in result.stdout


def test_in_ci_a_skipped_module_is_a_failure(tmp_path: Path) -> None:
    source = "import pytest\npytest.importorskip('no_such_module', reason='needs java')\ndef test_a(): pass\n"
    result = run_pytest(tmp_path, source, ci="true")
    assert result.returncode == 2, result.stdout
    assert "needs java" in result.stdout


def test_elsewhere_a_skip_is_a_skip(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, SKIPS, ci="")
    assert result.returncode == 0, result.stdout
    assert "1 passed, 3 skipped, 1 xfailed" in result.stdout
