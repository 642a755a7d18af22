"""Reports and journals for renderers."""

from __future__ import annotations

import json
from typing import Any


def result(number: int, status: str = "done", name: str = "t", **more: Any) -> dict[str, Any]:
    about = {"action": "declare_table", "catalog": "lake", "object": {"kind": "Table", "id": ["n", name]}}
    versions = {"version_before": None, "version_after": None, "tag": None}
    ended = {"status": status, "error": None, "attempts": 1, "seconds": 0.25}
    return {"id": f"s{number}", **about, **ended, **versions, **more}


def failed(number: int, status: str = "failed", message: str = "it is on fire", **more: Any) -> dict[str, Any]:
    return result(number, status, error={"code": 18, "name": "Internal", "message": message}, **more)


def report(*steps: dict[str, Any], outcome: str = "partial", message: str = "why", **more: Any) -> dict[str, Any]:
    made = {"format_version": "1.0", "plan_id": "sha256:ab", "outcome": outcome, "message": message}
    return {**made, "steps": [*steps], **more}


def identity(**more: Any) -> dict[str, Any]:
    """`run` of a report and of a journal's header."""
    times = {"at": "2026-01-02T03:04:05Z", "tool_version": "1.2.3"}
    return {**times, "by": "ann", "commit": "c0ffee" * 6, "dirty": False, "url": "https://ci.example/7", **more}


def events(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def header(time: str = "2026-01-02T03:04:05.000+00:00", plan_id: str = "sha256:ab") -> dict[str, Any]:
    return {"event": "header", "plan_id": plan_id, "tool_version": "0.1.0", "pid": 7, "time": time}


def start(step: str, time: str = "2026-01-02T03:04:06.000+00:00", name: str = "t") -> dict[str, Any]:
    about = {"action": "declare_table", "catalog": "lake", "object": {"kind": "Table", "id": ["n", name]}}
    return {"event": "start", "step": step, **about, "time": time}


def end(step: str, status: str = "done", time: str = "2026-01-02T03:04:08.500+00:00", **more: Any) -> dict[str, Any]:
    return {"event": "end", "step": step, "status": status, "attempts": 1, "error": None, "time": time, **more}


def lease(state: str, time: str = "2026-01-02T03:04:05.500+00:00", **more: Any) -> dict[str, Any]:
    return {"event": "lease", "state": state, "catalog": "lake", "place": "/lake/lease", **more, "time": time}


def finish(outcome: str = "applied", time: str = "2026-01-02T03:04:09.000+00:00") -> dict[str, Any]:
    return {"event": "finish", "outcome": outcome, "time": time}
