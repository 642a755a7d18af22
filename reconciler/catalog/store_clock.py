"""The clock of a storage beside that of this machine, asked right before something is removed because of its age.

Ages are counted with this machine's clock. One that is hours ahead makes everything look older than it is; what was
written a moment ago tells, because the storage stamps it with a clock of its own.
"""

from __future__ import annotations

import time

from reconciler.catalog.storage import Storage
from reconciler.core.verdicts import span
from reconciler.model.errors import CatalogError, Code

TOLERANCE = 300
"""Seconds. Ages are hours and days."""


def need_right_clock(storage: Storage) -> None:
    """Raises CatalogError when this machine's clock is ahead: nothing may be removed by age then. One that is behind
    only keeps things longer."""
    before = time.time()
    ahead = int(before - storage.time())
    if ahead > TOLERANCE:
        raise CatalogError(
            Code.INVALID_TABLE_STATE,
            f"the clock of this machine is {span(ahead)} ahead of that of {storage.root}: nothing is removed because "
            "of its age; correct the clock and run again",
        )
