"""What may have been meant by a word that nobody knows. Only what is near: a wrong guess costs more than none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from reconciler.explain.catalogue import NUMBERS, QUALIFIERS, explanations, plain

_NEAR = 0.75
_CODE = re.compile(r"[MP][0-9]+")
_NUMBER = re.compile(r"(error )?[0-9]+")
_WHERE = {"M": "diagnostics are", "P": "policies and plans have"}


def meant(word: str) -> str:
    """To be put behind the word: `; did you mean M203?`, which codes there are, or nothing."""
    first = word.split()[0].lower() if word.split() else ""
    named = [e.code.split(" ", 1)[1] for e in explanations() if e.code.startswith(f"{first} ")]
    if first in QUALIFIERS and named:
        return f"; {first} is one of {', '.join(named)}"
    if _CODE.fullmatch(word.upper()):
        return _code(word.upper())
    if _NUMBER.fullmatch(plain(word)):
        return _number(plain(word))
    # A number in a name is one of many: `error x` is not nearly `error 9`.
    known = {plain(n): e.code for e in explanations() for n in (e.code, *e.names) if not re.search("[0-9]", n)}
    return _did_you_mean(known[n] for n in difflib.get_close_matches(plain(word), known, 1, _NEAR))


def _code(word: str) -> str:
    """Three digits name a code that is not there, fewer the beginning of some; more are a mistake of the hand."""
    codes = sorted(e.code for e in explanations() if _CODE.fullmatch(e.code) and e.code[0] == word[0])
    if len(word) != len(codes[0]):
        begin = [c for c in codes if c.startswith(word)]
        if begin:
            return f"; codes that begin so are {begin[0]} to {begin[-1]}"
        return _did_you_mean(difflib.get_close_matches(word, codes, 1, _NEAR))
    group = [c for c in codes if c[:2] == word[:2]]
    if not group:
        return f"; {_WHERE[word[0]]} {codes[0]} to {codes[-1]}"
    near = [*[c for c in group if c < word][-1:], *[c for c in group if c > word][:1]]
    return f"; the nearest {'is' if len(near) == 1 else 'are'} {' and '.join(near)}"


def _number(word: str) -> str:
    errors = f"; errors of catalogs are {min(NUMBERS.values())} to {max(NUMBERS.values())}"
    exits = [e.code.removeprefix("exit ") for e in explanations() if e.kind == "exit code"]
    return errors if word.startswith("error") else f"{errors}, exit codes {', '.join(exits)}"


def _did_you_mean(found: Iterable[str]) -> str:
    return "".join(f"; did you mean {code}?" for code in found)
