"""Server processes of the tests: started, known to be the ones that answer, and ended with the test run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

READY_SECONDS = 60


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def processes() -> Iterator[tuple[int, int, bytes]]:
    """Number, parent and name of each process of this machine. A name is any bytes but a slash: blanks, brackets and
    line breaks too. Where there is no /proc, `ps` tells."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, check=True).stdout
        for line in listed.splitlines():
            pid, parent, name = line.split(maxsplit=2)
            yield int(pid), int(parent), name.rpartition(b"/")[2].rstrip()
        return
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It has ended by now.
            before, _, after = stat.read_bytes().rpartition(b")")
            yield int(stat.parent.name), int(after.split()[1]), before.partition(b"(")[2]


def is_there(pid: int) -> bool:
    """Running, or ended and not collected by its parent yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Conversation:
    """A process that serves many: a line on its standard input asks for something, a line of its output is the answer.
    It ends when its input does, so it never outlives the tests."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        self._log = log
        self._lock = threading.Lock()
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=env
            )

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        with self._lock:
            with contextlib.suppress(BrokenPipeError):  # then there is no answer either
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
            return self.read()

    def read(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(READY_SECONDS, self._process.kill)
        watchdog.start()
        try:
            answer = self._process.stdout.readline().strip()
        finally:
            watchdog.cancel()
        assert answer, f"process {self._process.pid} says nothing: {tail(self._log)}"
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        end(self._process)


class Served:
    """A server that was told its port. Ready when it answers at `ready`, is alive, and is the one that listens."""

    def __init__(
        self, command: Sequence[str], port: int, ready: str, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.port = port
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [*_ends_with_parent(), *command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env
            )
        try:
            self._wait(f"http://127.0.0.1:{port}{ready}", log)
        except BaseException:
            self.close()
            raise

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        end(self._process)

    def _wait(self, url: str, log: Path) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"the server ended at once: {tail(log)}"
            if answers(url):
                assert owns_port(self._process.pid, self.port), f"port {self.port} belongs to another process"
                return
            time.sleep(0.1)
        raise AssertionError(f"not ready after {READY_SECONDS} s: {tail(log)}")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def owns_port(pid: int, port: int) -> bool:
    """Some servers share a port with another process without a word. Where /proc cannot tell, it is believed."""
    tables = [p for p in (Path(f"/proc/{pid}/net/tcp"), Path(f"/proc/{pid}/net/tcp6")) if p.exists()]
    if not tables:
        return True
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    listening = {f"socket:[{r[9]}]" for r in rows if r[3] == "0A" and int(r[1].rpartition(":")[2], 16) == port}
    held = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            held.add(os.readlink(fd))
    return bool(listening) and listening <= held


def end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Asked first, then made to."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-2000:]


def _ends_with_parent() -> list[str]:
    """A server must not stay behind when the test run is killed. (A function between fork and exec could do the same,
    but forking a process in which lance has threads is not safe.)"""
    tool = shutil.which("setpriv")
    return [tool, "--pdeathsig", "TERM"] if tool else []
