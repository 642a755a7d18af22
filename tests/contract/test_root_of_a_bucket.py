"""Root tables in a bucket: markers and records there are objects, not files.

The rest of the contract is not run again on these two layouts, for time: what it plans is the same as on the folders
of these layouts, how it reads and writes a bucket is the same as on `dir-s3`, and both run all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contract import test_adopt, test_converge, test_create, test_delete, test_outsiders, test_unreadable
from contract.backends import ROOTS_OF_BUCKETS, Backend
from contract.lake import Lake


@pytest.mark.slow
@pytest.mark.parametrize("backend", ROOTS_OF_BUCKETS, ids=lambda backend: backend.name)
@pytest.mark.parametrize(
    "check",
    [
        test_converge.test_a_plan_without_changes_reads_little_and_writes_nothing,
        test_create.test_everything_that_is_declared_is_there,
        test_create.test_a_table_that_is_only_declared_gets_its_data,
        test_adopt.test_protected_objects_stay,
        test_adopt.test_table_properties_of_others_are_left_alone,
        test_delete.test_prune_removes_orphans_and_keeps_their_data,
        test_delete.test_data_that_others_changed_meanwhile_is_diffed_not_replaced,
        test_outsiders.test_what_is_not_ours_is_the_same_to_the_last_bit,
        test_outsiders.test_a_table_that_appears_during_the_run_is_left_alone,
        test_unreadable.test_a_table_that_cannot_be_read_is_blocked,
    ],
    ids=lambda check: check.__name__,
)
def test_in_a_bucket(
    check: Callable[[Lake], None], backend: Backend, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    check(Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path))
