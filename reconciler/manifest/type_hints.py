"""How to write a type that cannot be read: as a whole where that can be told, otherwise the form of the part."""

from __future__ import annotations

import difflib
import re

from reconciler.manifest.type_words import Written, ours
from reconciler.model.arrow import TypeSyntaxError, parse_type
from reconciler.model.arrow_forms import FORMS, written
from reconciler.model.arrow_grammar import ALIASES, KNOWN_NAMES

ALL_TYPES = "`reconciler explain types` lists all types"
_LONGEST = 300
"""Of a text that is looked at; people write shorter ones, and a hint has to be read."""
_STEPS = 16
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACKETS = {"<": ">", "(": ")", "[": "]"}


def hint_for(text: str, error: TypeSyntaxError) -> str:
    """`error`: what the grammar said of the text."""
    if _cut_off(text):
        return f"{_form(error.inside)}; inside of {{ }} put it in quotes: YAML ends it at a comma"
    whole, notes = _corrected(text)
    if whole is not None:
        return f"write {whole}" + (f" ({'; '.join(notes)})" if notes else "")
    if re.match(r"\s*not null\b", text[error.position :], re.IGNORECASE):
        return "write `nullable: false` beside `type`; `not null` is for what is inside of a type"
    word = _WORD.match(text, error.position)
    if str(error).startswith("unknown type") and word is not None:
        return _unknown(word.group())
    return _form(error.inside) if error.inside else ALL_TYPES


def _cut_off(text: str) -> bool:
    """`{type: decimal128(10, 2)}` without quotes is the type `decimal128(10`, and a key `2)`."""
    word = _WORD.match(text)
    opened = [char for char in text if char in _BRACKETS]
    return word is not None and word.group() in FORMS and len(opened) > sum(char in ">)]" for char in text)


def _form(name: str) -> str:
    return f"write {name}" if FORMS[name].spellings == (name,) else f"{name} is written {written(name)}"


def _unknown(word: str) -> str:
    if word.lower() in FORMS:
        return _form(word.lower())
    known = ours(Written(word))
    if known is not None:
        return f"write {known.text}" + (f" ({known.note})" if known.note else "")
    near = difflib.get_close_matches(word.lower(), [*KNOWN_NAMES, *ALIASES], 1, 0.6)
    if not near:
        return "known types: " + ", ".join(KNOWN_NAMES) + f"; {ALL_TYPES}"
    form = FORMS.get(near[0])
    plain = form is None or form.spellings == (near[0],)
    return f"did you mean {near[0]}?" + ("" if plain else f" {_form(near[0])}")


def _corrected(text: str) -> tuple[str | None, list[str]]:
    """The text with what other systems write replaced, one part after the other; None when it is no type even so."""
    notes: list[str] = []
    for _ in range(_STEPS if len(text) <= _LONGEST else 0):
        try:
            return str(parse_type(text)), notes
        except TypeSyntaxError as error:
            unknown = str(error).startswith("unknown type")
            for start in [error.position] if unknown else error.starts:
                changed, note = _replaced(text, start)
                if changed != text:
                    notes += [note] if note and note not in notes else []
                    break
            else:
                return None, []
            text = changed
    return None, []


def _replaced(text: str, start: int) -> tuple[str, str]:
    """The text with ours for the type that begins there, and what is to be said about it."""
    word = _WORD.match(text, start)
    if word is None:
        return text, ""
    bracket, arguments, end = _arguments(text, word.end())
    name = ALIASES.get(word.group(), word.group())
    found = ours(Written(name, bracket, arguments))
    if found is None and bracket and FORMS.get(name) is not None and FORMS[name].spellings == (name,):
        plain = Written(name, bracket, arguments).numbers
        return (text[:start] + name + text[end:], f"{name} has no length") if plain else (text, "")
    if found is None:
        return text, ""
    return text[:start] + found.text + text[end:], found.note


def _arguments(text: str, at: int) -> tuple[str, tuple[str, ...], int]:
    """The bracket that follows, what is in it between commas, and where it ends; nothing when it is not closed."""
    begin = at + len(text[at:]) - len(text[at:].lstrip())
    bracket = text[begin : begin + 1]
    if bracket not in _BRACKETS:
        return "", (), at
    expected, parts, first = [_BRACKETS[bracket]], [], begin + 1
    for place in range(begin + 1, len(text)):
        char = text[place]
        if char in _BRACKETS:
            expected.append(_BRACKETS[char])
        elif char == "," and len(expected) == 1:
            parts.append(text[first:place].strip())
            first = place + 1
        elif char == expected[-1]:
            expected.pop()
            if not expected:
                inner = text[first:place].strip()
                return bracket, tuple([*parts, inner] if inner or parts else ()), place + 1
        elif char in ">)]":
            break
    return "", (), at
