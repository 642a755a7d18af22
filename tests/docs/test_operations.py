"""What the pages for operators say of words and exit codes is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.model.lease_event import STATES
from reconciler.model.run import CHECK_FAILED, DONE

DOCS = Path(__file__).resolve().parents[2] / "docs"


def row(page: str, first: str) -> str:
    """The one line of a table whose first cell begins so."""
    (found,) = [line for line in (DOCS / page).read_text().splitlines() if line.startswith(f"| {first}")]
    return found


def test_the_states_of_a_lease_in_the_log() -> None:
    told = row("kubernetes.md", "`lease`").split("`catalog`")[0]
    assert set(re.findall(r"`(\w+)`", told)) - {"lease", "state", "level", "error"} == set(STATES)


def test_the_words_for_commands_without_a_plan() -> None:
    told = row("kubernetes.md", "`run_ended`")
    assert f"`{DONE}`" in told
    assert f"`{CHECK_FAILED}`" in told


def test_a_lease_that_cannot_be_taken_is_found_by_its_message() -> None:
    from reconciler.engine.lease_keeper import LeaseUnavailable
    from reconciler.model.errors import CatalogError, Code

    message = f"nothing was written: {LeaseUnavailable('NAME', 'p', CatalogError(Code.INTERNAL, 'x'))}"
    begins = row("operations.md", "`nothing was written: the lease").split("`")[1]
    assert message.startswith(begins)


def test_a_missing_variable_and_a_missing_file_are_found_by_their_codes() -> None:
    from reconciler.manifest.variables import Resolver

    resolver = Resolver({}, environ={})
    codes = [resolver.expand(text).troubles[0].code for text in ("${env:NONE}", "${file:/nowhere/at/all}")]
    assert re.findall(r"`error\[(\w+)\]`", row("operations.md", "`error[")) == codes
