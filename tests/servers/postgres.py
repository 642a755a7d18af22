"""A PostgreSQL server on the loopback interface, in a folder of its own. Of root it is run as `postgres`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers.cache import jars
from servers.process import free_port

USER = "reader"


@dataclass(frozen=True)
class Postgres:
    port: int
    psql: str

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def run(self, sql: str) -> None:
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-v", "ON_ERROR_STOP=1", "-q", "-c", sql]
        subprocess.run([self.psql, *where, "postgres"], check=True, capture_output=True, text=True)


def driver() -> Path:
    """The jar with `org.postgresql.Driver`."""
    (found,) = jars("postgresql").glob("postgresql-*.jar")
    return found


def _program(name: str) -> str:
    places = os.pathsep.join([os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(f"needs `{name}` of PostgreSQL")
    return found


@contextmanager
def postgres() -> Iterator[Postgres]:
    initdb, pg_ctl, psql = (_program(name) for name in ("initdb", "pg_ctl", "psql"))
    as_other: Sequence[str] = ()
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            as_other = ("runuser", "-u", "postgres", "--")
        data, port = f"{folder}/data", free_port()
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"

        def control(*command: str) -> None:
            subprocess.run([*as_other, *command], check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=120)

        control(initdb, "-D", data, "-A", "trust", "-U", USER, "--no-sync")
        control(pg_ctl, "-D", data, "-w", "-o", options, "-l", f"{folder}/log", "start")
        try:
            yield Postgres(port, psql)
        finally:
            control(pg_ctl, "-D", data, "-w", "-m", "immediate", "stop")
