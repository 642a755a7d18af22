"""The contract suite, unchanged, on a backend that came with another package."""

from __future__ import annotations

from importlib import import_module

import pytest
from contract.test_adopt import theirs
from contract.test_schema import filled

__all__ = ["filled", "theirs"]  # fixtures of two of the modules

pytestmark = pytest.mark.slow
MODULES = ("adopt", "converge", "create", "delete", "outsiders", "rename", "schema", "unreadable")

for _module in MODULES:
    for _name, _test in vars(import_module(f"contract.test_{_module}")).items():
        if _name.startswith("test_"):
            globals()[f"test_{_module}_{_name.removeprefix('test_')}"] = _test
