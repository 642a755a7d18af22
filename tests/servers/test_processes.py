"""The other processes of a machine have any name, and none of them may break the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.pipeline import claims
from servers import process
from servers.process import is_there, processes
from servers.spark import java_of

NAMES = (b"a b", b"tmux: server", b"x) S 1 (java", b"((", b"))) Z 1", b"a\nb", b"\xff\xfe )", b"1 (java) S 1")
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc: names of any bytes")


@contextmanager
def called(name: bytes, folder: Path) -> Iterator[int]:
    """A process with this name, a child of this one. It ends with its standard input."""
    program = os.path.join(os.fsencode(folder), name)
    cat = shutil.which("cat")
    assert cat is not None
    shutil.copy(os.path.realpath(cat), program)
    with subprocess.Popen([b"cat"], executable=program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"x")
        child.stdin.flush()
        child.stdout.read(1)  # By now it is that program, and has its name.
        yield child.pid
        child.stdin.close()


@needs_proc
@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_process_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    with called(name, tmp_path) as pid:
        assert java_of(pid) is None
        assert (pid, os.getpid(), name) in set(processes())
        assert claims._born(pid).isdigit()
        with called(b"java", tmp_path) as java:
            assert (java_of(os.getpid()), os.getpid(), b"java") in set(processes())
            assert (java, os.getpid(), b"java") in set(processes())
    assert not is_there(java)
    assert claims._born(pid) == ""


def test_processes_are_found_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `ps` lists them on other systems: the path of the program, with whatever blanks are in it."""

    class Elsewhere(type(Path())):  # type: ignore[misc]
        def exists(self) -> bool:
            return False

    listing = b"    1     0 /sbin/launchd\n   77     1 /Applications/A B.app/x (y)\n   78    77 /usr/bin/java\n"
    monkeypatch.setattr(process, "Path", Elsewhere)
    monkeypatch.setattr(process.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, listing))
    assert java_of(77) == 78
    assert set(processes()) == {(1, 0, b"launchd"), (77, 1, b"x (y)"), (78, 77, b"java")}
