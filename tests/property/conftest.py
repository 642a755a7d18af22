"""How many examples here: the profile that tests/conftest.py chose, with this folder's numbers."""

from __future__ import annotations

import os

from examples import COMMON
from hypothesis import HealthCheck, settings

# A tape has a fixed length, and cases without a plan are discarded: neither is a mistake.
_COMMON = settings(
    COMMON,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
)
settings.register_profile("quick", _COMMON, max_examples=30, stateful_step_count=20)
settings.register_profile("full", _COMMON, max_examples=100, stateful_step_count=30)
settings.register_profile("thorough", _COMMON, max_examples=5000, stateful_step_count=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
