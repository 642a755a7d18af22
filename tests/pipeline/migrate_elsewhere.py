"""Moves a table on the Spark that is named, and says nothing: `migrate_elsewhere.py '{"remote": …}' FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from contract.backends import dir_site
from contract.outsider_dir import LocalFiles
from pipeline.migrate_lake import Move, errors

from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.session import SparkOptions

if __name__ == "__main__":
    where, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    running = Running(SparkOptions(where.get("master"), where.get("remote"), tuple(where.get("conf", {}).items())))
    sites = [dir_site(LocalFiles(folder / name), {}) for name in ("old", "new")]
    problems = errors(Move(folder, sites[0], sites[1], running).apply())
    running.close()
    assert problems == [], problems
