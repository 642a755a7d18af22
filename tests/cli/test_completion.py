"""Completion, asked of the shells themselves."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cli_runs import reconciler

FLAG_WORDS = [
    (["reconciler", "pl"], {"plan"}),
    (["reconciler", "plan", "--targ"], {"--target"}),
    (["reconciler", "apply", "--allow", "drop_n"], {"drop_namespace"}),
    (["reconciler", "pipeline", "ver"], {"verify"}),
    (["reconciler", "pipeline", "verify", "m", "--format", "ju"], {"junit"}),
    (["reconciler", "completion", "fi"], {"fish"}),
]


def script(shell: str, folder: Path) -> Path:
    made = folder / f"reconciler.{shell}"
    made.write_text(reconciler(folder, "completion", shell).out)
    return made


def needed(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is missing: the system's packages have it (apt-get install {shell}), as .ci/run says")
    return found


@pytest.mark.parametrize(("words", "offered"), FLAG_WORDS, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_bash(words: list[str], offered: set[str], tmp_path: Path) -> None:
    ask = f'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1}; _reconciler; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(
        [needed("bash"), "--norc", "-c", ask, "bash", script("bash", tmp_path), *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert set(done.stdout.split()) == offered


def test_bash_leaves_other_values_to_file_names(tmp_path: Path) -> None:
    ask = 'source "$1"; COMP_WORDS=(reconciler plan --var x); COMP_CWORD=3; _reconciler; echo "[${COMPREPLY[*]}]"'
    made = script("bash", tmp_path)
    done = subprocess.run(["bash", "--norc", "-c", ask, "bash", made], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert "complete -o default -F _reconciler reconciler" in made.read_text()


@pytest.mark.parametrize(("words", "offered"), FLAG_WORDS, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_fish(words: list[str], offered: set[str], tmp_path: Path) -> None:
    ask = f"source {script('fish', tmp_path)}; complete -C {' '.join(words)!r}"
    done = subprocess.run(
        [needed("fish"), "--no-config", "-c", ask],
        capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr == ""
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == offered


@pytest.mark.slow
@pytest.mark.parametrize(("words", "offered"), FLAG_WORDS, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_zsh(words: list[str], offered: set[str], tmp_path: Path) -> None:
    """In a terminal of its own: zsh completes nowhere else."""
    shell = needed("zsh")
    made = script("zsh", tmp_path)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(HOME=str(tmp_path), TERM="dumb", PS1="READY> ")
        os.chdir(tmp_path)
        os.execv(shell, [shell, "-f", "-i"])
    try:
        _read(terminal, "READY> ")
        os.write(terminal, f"autoload -U compinit; compinit -u -D; source {made}\n".encode())
        _read(terminal, "READY> ")
        os.write(terminal, " ".join(words).encode() + b"\t")
        shown = _read(terminal, next(iter(offered)))
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert " ".join([*words[:-1], *offered]) in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\x08 \x08", "", shown)


def _read(terminal: int, until: str) -> str:
    seen, end = "", time.monotonic() + 20
    while until not in seen.rpartition("\n")[2] and time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
    return seen
