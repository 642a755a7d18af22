"""Shared by every test: no skipped test in CI, no clock in property tests, how many examples they try, and that what
was compiled is kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator

import pytest
from examples import COMMON, IN_CI
from hypothesis import settings

# Containers often ask for no compiled files. Tests and the program they start would then be compiled anew by every
# process: ten seconds of each test run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("quick", COMMON, max_examples=25)
settings.register_profile("full", COMMON, max_examples=100)
settings.register_profile("thorough", COMMON, max_examples=2000)


def pytest_configure(config: pytest.Config) -> None:
    """Few examples in the run that answers in a minute, more where the slow tests run too, HYPOTHESIS_PROFILE for a
    search over night. Set before any test is imported: a test takes its number when it is defined. A folder with
    numbers of its own registers the same names and loads the one of the environment."""
    chosen = "quick" if "not slow" in config.option.markexpr else "full"
    settings.load_profile(os.environ.setdefault("HYPOTHESIS_PROFILE", chosen))


def fail_instead_of_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """A skip says that a component is missing. On a developer's machine that is fine; in CI it would hide a test."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: nothing may be skipped when CI=true. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_instead_of_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_instead_of_skip(report)
    return report
