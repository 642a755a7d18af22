"""The least that Glue has to allow: what docs/security.md lists is enough, and is what the program really calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from catalog.glue_support import Account, account, glue_client, glue_server
from cli.cli_runs import Run, namespace, reconciler, table, write
from servers.glue_moto import KEYS

__all__ = ["account", "glue_client", "glue_server"]

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
ENV = {"KEY": KEYS["access_key_id"], "SECRET": KEYS["secret_access_key"]}
READING, APPLYING = 1, 2
"""Columns of the table."""


def documented(column: int) -> set[str]:
    (line,) = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `glue` |")]
    return set(re.findall(r"`glue:(\w+)`", line.split("|")[column + 1]))


def optional(word: str) -> set[str]:
    """What is only needed for this, as the page says below the table."""
    (line,) = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("- `glue`") and word in line]
    return set(re.findall(r"`glue:(\w+)`", line))


def catalog(account: Account, more: str = "") -> str:
    given = {**account.options(), "access_key_id": "${env:KEY}", "secret_access_key": "${env:SECRET}"}
    options = "".join(f"  {k}: {v!r}\n" for k, v in given.items())
    return (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: glue\n"
        f"{options}  management: {{owner: us}}\n{more}"
    )


def allow_only(account: Account, operations: set[str]) -> None:
    """A policy without a statement for it: AWS answers AccessDeniedException."""
    account.server.forget()
    for operation in account.glue.meta.service_model.operation_names:
        if operation not in operations:
            account.server.fail(operation, "AccessDeniedException", times=None, message="is not authorized")


def run(account: Account, folder: Path, *arguments: str | Path) -> tuple[Run, set[str]]:
    """And what was called."""
    account.server.calls.clear()
    done = reconciler(folder, *arguments, env=ENV)
    return done, set(account.server.calls)


def flat(account: Account, folder: Path, *documents: str) -> Path:
    return write(folder, catalog(account), *documents)


@pytest.mark.slow
def test_reading_and_applying_take_what_is_documented_and_no_more(account: Account, tmp_path: Path) -> None:
    """Child catalogs are there, and nobody may list them."""
    account.make_database("theirs", account.server.add_catalog(account.id, "elsewhere"))
    reading, applying = documented(READING), documented(APPLYING)
    dropping = optional("`allow: [drop_namespace]`")
    assert "GetCatalogs" not in reading | applying | dropping
    called: set[str] = set()
    only_read: set[str] = set()

    def step(*arguments: str | Path, code: int = 0, privileges: set[str] = reading | applying) -> Run:
        allow_only(account, privileges)
        done, calls = run(account, tmp_path, *arguments)
        assert done.code == code, done.out + done.err
        assert calls <= privileges
        called.update(calls)
        if privileges == reading:
            only_read.update(calls)
        return done

    first = [namespace("db", spec="{properties: {k: v}}"), table("db", "t"), table("db", "u")]
    file = flat(account, tmp_path, *first)
    step("plan", file, "-o", "plan.json", privileges=reading)
    step("apply", "--plan", "plan.json", "--yes")
    step("drift", file, privileges=reading)
    step("status", file, privileges=reading)
    step("unlock", file, privileges=reading)
    step("import", file, "-o", tmp_path / "imported", privileges=reading)
    second = [namespace("db", spec="{properties: {k: w}}"), table("db", "t", spec="description: new"), table("db", "v")]
    flat(account, tmp_path, *second)
    step("drift", file, code=2, privileges=reading)
    step("apply", file, "--yes", "--prune")
    step("plan", file, "--detailed-exitcode", privileges=reading)
    gone = [table("db", t, spec="state: absent") for t in ("t", "v")]
    flat(account, tmp_path, namespace("db", spec="{state: absent, allow: [drop_namespace]}"), *gone)
    step("apply", file, "--yes", privileges=reading | applying | dropping)
    account.server.forget()
    assert [d["Name"] for d in account.glue.get_databases(CatalogId=account.id)["DatabaseList"]] == ["__reconciler"]
    assert only_read == reading
    assert called == reading | applying | dropping


@pytest.mark.slow
def test_a_table_whose_name_a_database_of_a_child_catalog_has(account: Account, tmp_path: Path) -> None:
    """Where manifests speak of that catalog, it is in the way for plan and for apply alike; elsewhere for neither."""
    child = account.server.add_catalog(account.id, "db")
    account.make_database("db")
    account.make_database("t", child)
    file = flat(account, tmp_path, namespace("db"), table("db", "t"))
    done, calls = run(account, tmp_path, "apply", file, "--yes", "--adopt")
    assert done.code == 0, done.out + done.err
    assert "GetCatalogs" not in calls
    deep = [catalog(account, "  catalogs: true\n"), namespace("db"), table("db", "t2")]
    account.make_database("t2", child)
    write(tmp_path, *deep)
    done, calls = run(account, tmp_path, "plan", file)
    assert "GetCatalogs" in calls
    assert "a namespace of this name is there" in done.out, done.out + done.err


@pytest.mark.slow
def test_a_database_of_a_child_catalog_that_appears_before_apply_is_still_seen(
    account: Account, tmp_path: Path
) -> None:
    child = account.server.add_catalog(account.id, "deep")
    account.make_database("db", child)
    account.make_database("flat")
    file = flat(account, tmp_path, table("deep", "db", "t"), table("flat", "x"))
    done, calls = run(account, tmp_path, "plan", file, "-o", "plan.json")
    assert done.code == 0, done.out + done.err
    assert "GetCatalogs" in calls
    allow_only(account, (documented(READING) | documented(APPLYING)))
    done, calls = run(account, tmp_path, "apply", "--plan", "plan.json", "--yes")
    assert done.code == 1, done.out + done.err
    assert "PermissionDenied" in done.err + done.out or "authorized" in done.err + done.out
    allow_only(account, documented(READING) | documented(APPLYING) | optional("child catalogs"))
    done, calls = run(account, tmp_path, "apply", "--plan", "plan.json", "--yes")
    assert done.code == 0, done.out + done.err
    assert "GetCatalogs" in calls
