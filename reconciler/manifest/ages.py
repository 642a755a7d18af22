"""Ages in manifests: `30m`, `12h`, `14d`, `2w`; `forever` where something may be kept without end."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from reconciler.model.maintenance import FOREVER

_AGE = re.compile(r"^[1-9][0-9]{0,5}[smhdw]\Z")


def _an_age(text: str) -> str:
    if not _AGE.match(text):
        raise ValueError("an age is a number and one of s, m, h, d, w")
    return text


Age = Annotated[str, AfterValidator(_an_age)]


def _a_retention(text: str) -> str:
    return text if text == FOREVER else _an_age(text)


Retention = Annotated[str, AfterValidator(_a_retention)]
