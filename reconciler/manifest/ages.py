"""Ages in manifests: `30m`, `12h`, `14d`, `2w`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_AGE = re.compile(r"^[1-9][0-9]{0,5}[smhdw]\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def _an_age(text: str) -> str:
    if not _AGE.match(text):
        raise ValueError("an age is a number and one of s, m, h, d, w")
    return text


Age = Annotated[str, AfterValidator(_an_age)]


def seconds_of(age: str) -> int:
    return int(age[:-1]) * _SECONDS[age[-1]]
