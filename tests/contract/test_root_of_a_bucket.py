"""Root tables of the default layout in a bucket: markers and records there are objects, not files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contract import test_adopt, test_converge, test_create, test_delete, test_outsiders, test_unreadable
from contract.backends import ROOT_OF_A_BUCKET
from contract.lake import Lake


@pytest.mark.slow
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
def test_in_a_bucket(check: Callable[[Lake], None], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    check(Lake(ROOT_OF_A_BUCKET, ROOT_OF_A_BUCKET.make(tmp_path, request.getfixturevalue), tmp_path))
