"""How many examples here: the profile that tests/conftest.py chose, with this folder's numbers."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# All else is as tests/conftest.py has it; it is not loaded yet when this folder alone is asked for. A tape has a fixed
# length, and cases without a plan are discarded: neither is a mistake.
_COMMON = settings(
    settings.get_profile("quick"),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
)
settings.register_profile("quick", _COMMON, max_examples=30, stateful_step_count=20)
settings.register_profile("full", _COMMON, max_examples=200, stateful_step_count=30)
settings.register_profile("thorough", _COMMON, max_examples=5000, stateful_step_count=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
