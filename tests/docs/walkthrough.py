"""Runs what a page tells its reader to do, in order, in an empty folder.

A ```yaml or ```python block whose first line is `# path/file.yaml` is written to that file. In a ```console block every
line that begins with `$ ` is a command for bash, and what follows is what it prints (stdout and stderr, as a terminal
shows them). `# exits with N` behind a command says so; without it the command has to succeed. A line `...` in an output
stands for lines that are not worth reading.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^(`{3,})(yaml|python|console)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
CHANCE = {
    r"reconciler-[0-9a-f]{12}-s": "reconciler-3f9d21c07a5e-s",
    r"/[0-9a-f]{8}_": "/1c0de5a7_",
    r"(?m)^\d+/\d+ steps, \d+ s.*\n": "",
}
"""What is another one each time: ids of plans that are made on a location, which has a part that is drawn by lot, and
the progress that a slow machine shows."""
EXIT = re.compile(r"\s+# exits with (\d+)$")


@dataclass(frozen=True)
class Command:
    line: str
    code: int
    shown: str

    @property
    def bash(self) -> str:
        return EXIT.sub("", self.line)


def commands_of(block: str) -> list[Command]:
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        code = EXIT.search(line)
        found.append(Command(line, int(code.group(1)) if code else 0, shown))
    return found


def environment(home: Path) -> dict[str, str]:
    """Like a fresh machine's, with the installed program on the PATH and git commits that are always the same."""
    kept = {k: v for k, v in os.environ.items() if k in ("LANG", "TMPDIR", "SSL_CERT_FILE", "PYTHONPATH", "JAVA_HOME")}
    facts = {"NAME": "Ada", "EMAIL": "ada@example.com", "DATE": "2026-01-05T09:00:00Z"}
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in facts.items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return kept | who | {"HOME": str(home), "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", "USER": "ada"}


def run_page(text: str, folder: Path) -> str:
    """The page as it would have to be: the same text with what the commands really print."""
    env = environment(folder.parent)

    def block(match: re.Match[str]) -> str:
        fence, kind, body = match.groups()
        name = re.match(r"# (\S+\.(?:yaml|py))\n", body)
        if kind != "console" and name:
            target = folder / name.group(1)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body)
        if kind != "console":
            return match.group(0)
        shown = "".join(_run(command, folder, env) for command in commands_of(body))
        return f"{fence}console\n{shown}{fence}"

    return BLOCK.sub(block, text)


def _run(command: Command, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "--norc", "-c", command.bash], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == command.code, f"$ {command.line}\n{done.stdout}\nexit code {done.returncode}"
    printed = done.stdout
    for pattern, instead in CHANCE.items():
        printed = re.sub(pattern, instead, printed)
    return f"$ {command.line}\n{command.shown if agrees(command.shown, printed) else printed}"


def agrees(shown: str, printed: str) -> bool:
    """`...` alone on a line stands for any lines."""
    pattern = re.escape(shown).replace(re.escape("...\n"), "(?:.*\n)*?")
    return re.fullmatch(pattern, printed) is not None
