"""The styles and scripts of our pages, which are files beside the code."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=16)
def asset(name: str) -> str:
    return (files("reconciler.render") / "page" / name).read_text("utf-8")
