"""When one catalog cannot be read there is no answer for any; --catalog gives one for the others."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

MOST = 5
"""Names that are written out, ready to be copied."""


def way_around(others: Sequence[str]) -> str:
    """Follows the message about those that cannot be read; empty when there are no others."""
    if not others:
        return ""
    if len(others) > MOST:
        return f"; for the others alone: `--catalog NAME`, once for each of these {len(others)}"
    return f"; for the others alone: `{' '.join(f'--catalog {shlex.quote(name)}' for name in others)}`"
