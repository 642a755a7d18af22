"""What all property tests have in common. A deadline would make a slow machine look like a bug. In CI a commit always
gets the same examples: what it says is about the commit, not about luck. Every other run looks at new ones."""

from __future__ import annotations

import os

from hypothesis import settings

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
COMMON = settings(deadline=None, derandomize=IN_CI)
