"""JSON of a service, read strictly. Python's reader keeps the last of two equal keys: a listing with a second, empty
list would be read as empty and complete."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

from reconciler.model.codec import each_once

MOST_VALUES = 2_000_000
"""Of one answer. A value of three bytes on the wire takes a hundred in memory."""
_LARGE = 1024 * 1024
_ONE_LARGE = threading.Lock()
"""Large answers are read one at a time: their objects, and a text of four bytes a character, are there only once."""
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


class Malformed(ValueError):
    """It is whole, and no JSON that two readers would agree on. Asking again does not help."""


def loads(content: bytes) -> Any:
    """Raises Malformed; JSONDecodeError when it ends early or is no JSON at all."""
    if len(content) <= _LARGE:
        return _loads(content)
    with _ONE_LARGE:
        return _loads(content)


def _loads(content: bytes) -> Any:
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > MOST_VALUES:
        raise Malformed(f"it holds more than {MOST_VALUES} values")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Malformed("it is not UTF-8") from None
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise error if isinstance(error, Malformed) else Malformed("it holds a number that is too long") from None
    if _HALF_PAIR.search(text) is not None:
        _need_whole_characters(found)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    try:
        return each_once(pairs)
    except ValueError as error:
        raise Malformed(str(error)) from None


def _need_whole_characters(found: Any) -> None:
    """Half of a surrogate pair is no character: it can be neither sent nor printed."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Malformed("it holds half of a surrogate pair") from None
    except RecursionError:
        raise Malformed("it is nested too deeply") from None


def _constant(name: str) -> Any:
    raise Malformed(f"it holds {name}, which is no JSON")
