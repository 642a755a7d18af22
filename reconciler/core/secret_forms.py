"""Finds known secrets in a text, in every form in which services, libraries and renderers write them.

A text is compared after folding: case, white space and line ends are dropped, and escapes (HTML, URL, JSON, Python,
Rust) are decoded layer by layer. Folding covers what a list of escaped spellings cannot: mixed, repeated and wrapped
escapes. Hex and base64 hide the boundaries of characters, so those spellings of a secret are searched for by
themselves. A match is mapped back to the characters of the original text.
"""

from __future__ import annotations

import base64
import contextlib
import html.entities
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, unquote, urlsplit

SHORTEST = 4
"""Shorter values are words like `1` or `on`: hiding them would garble every text and protect nothing."""
LONG = 8
"""From here on a secret is looked for across white space, in base64, and by its beginning or end."""
CUT = 12
"""So many characters at the beginning or end of a longer secret are always recognised."""
LAYERS = 5
"""Escapes within escapes. A limit, because a hostile text could nest them as deep as it is long."""
PLAIN = re.compile(r"true|false|none|null|[0-9.]{1,6}", re.IGNORECASE)

_HEX = "[0-9a-fA-F]"
_UNIT = re.compile(
    rf"%[c-fC-F]{_HEX}(?:%[89abAB]{_HEX})+|%{_HEX}{{2}}"
    rf"|%[uU][dD][89abAB]{_HEX}{{2}}%[uU][dD][c-fC-F]{_HEX}{{2}}|%[uU]{_HEX}{{4}}"
    r"|&(?:amp;)*#0*[0-9]{1,7};?|&(?:amp;)*#[xX]0*[0-9a-fA-F]{1,6};?|&[a-zA-Z][a-zA-Z0-9]{1,30};"
    rf"|\\+[uU][dD][89abAB]{_HEX}{{2}}\\+[uU][dD][c-fC-F]{_HEX}{{2}}"
    rf"|\\+U{_HEX}{{8}}|\\+[uU]{_HEX}{{4}}|\\+[uU]\{{{_HEX}{{1,6}}\}}"
    rf"|\\+[xX][c-fC-F]{_HEX}(?:\\+[xX][89abAB]{_HEX})+|\\+[xX]{_HEX}{{2}}|\\+[0-7]{{3}}"
    r"|\\+[nrtfvab\"'/`]|\\\\+"
)
"""One escaped character. Only a run of backslashes may stand for itself: repeated escaping doubles it."""
_ESCAPES = re.compile(r"[%&\\]")
_CONTROLS = r"\x00-\x08\x0e-\x1f\x7f"
_GAPS = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_SPACE = re.compile(rf"\\?[\s+{_CONTROLS}{_GAPS}]+")
"""What wrapping inserts, and the zeros of a UTF-16 that was taken for another encoding. `+` stands for a space in URLs;
a backslash continues a line."""
_NOT_SIMPLE = re.compile(rf"[\\{_CONTROLS}]")
_OPAQUE = re.compile(r"[\w+/=.~-]+")


@dataclass(frozen=True, slots=True)
class _Form:
    """`text` is folded; `head` and `tail` are the parts of it that give it away, or all of it."""

    text: str
    head: str
    tail: str


@dataclass(frozen=True, slots=True)
class _Stage:
    """A text after some layers of decoding, and the way back to the original characters."""

    text: str
    origin: Callable[[int, int], tuple[int, int]]


class SecretForms:
    """Immutable. `whole`: values of which a part says nothing, such as a region or an address."""

    def __init__(self, secrets: Iterable[str], whole: Iterable[str] = ()) -> None:
        whole = frozenset(whole)
        tight: set[_Form] = set()
        loose: set[str] = set()
        exact: set[str] = set()
        for secret in filter(worth_hiding, secrets):
            for text, cut in _spellings(secret):
                exact.add(text)
                for folded in {_lower(_joined(text)), _folded(text), _folded(text.upper())}:
                    if len(folded) >= LONG:
                        tight.add(_form(folded, cut and secret not in whole))
                    else:
                        loose |= {t for t in (_lower(text), _lower(_decoded(text))) if len(t) >= SHORTEST}
                for coded in _coded(text):
                    tight.add(_Form(coded, coded[:CUT], coded[:CUT]) if cut else _Form(coded, coded, coded))
        self._tight, self._loose, self._exact = frozenset(tight), frozenset(loose), frozenset(exact)
        self._needles = tuple({n for f in tight for n in (f.head, f.tail)})

    def masked(self, text: str, mask: str) -> str:
        if not self._needles and not self._loose:
            return text
        parts, done = list[str](), 0
        for start, end in _merged([*self._spans(text)]):
            parts += (text[done:start], mask)
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """As it is, first: folding joins what stands beside a secret to its last character, such as a backslash."""
        yield from (span for secret in self._exact for span in _found(text, secret))
        if self._needles:
            for stage in _stages(text, self._needles, spaced=False):
                yield from (stage.origin(*span) for span in self._tight_spans(stage.text))
        if self._loose:
            for stage in _stages(text, self._loose, spaced=True):
                yield from (stage.origin(*span) for n in self._loose for span in _found(stage.text, n))

    def _tight_spans(self, text: str) -> Iterator[tuple[int, int]]:
        for form in self._tight:
            for start, _ in _found(text, form.head):
                yield start, start + _alike(text[start : start + len(form.text)], form.text)
            for _, end in _found(text, form.tail) if form.tail != form.head else ():
                begin = max(end - len(form.text), 0)
                yield end - _alike(text[begin:end][::-1], form.text[::-1]), end


def worth_hiding(secret: str) -> bool:
    return len(secret) >= SHORTEST and PLAIN.fullmatch(secret) is None


# spellings of a secret


def _spellings(secret: str) -> Iterator[tuple[str, bool]]:
    """As it is, each line of a multi-line one, and the password in a URL. With each: whether its beginning alone gives
    it away, which that of an address or of a JSON document does not."""
    lines = [line.strip() for line in secret.splitlines() if line.strip()]
    one = secret.strip()
    plain = {one: len(lines) == 1 and "://" not in one and one[:1] not in ("{", "[")}
    if len(lines) > 1:
        plain |= {line: _OPAQUE.fullmatch(line) is not None for line in lines}
    with contextlib.suppress(ValueError):
        password = urlsplit(secret).password or ""
        plain |= {password: True, unquote(password): True}
    yield from ((text, cut) for text, cut in plain.items() if len(text) >= SHORTEST)


def _coded(text: str) -> Iterator[str]:
    """In hex and in base64, folded, and as libraries print bytes. As a service repeats a Basic header, the secret may
    have been escaped before."""
    data = text.encode("utf-8", "surrogatepass")
    wide = text.encode("utf-16-le", "surrogatepass")
    yield from (data.hex(), data.hex(":"), data.hex("-"), "=" + data.hex("="), wide.hex())
    yield from ("".join(map(str, data)), ",".join(map(str, data)), ",".join(f"0x{byte:02x}" for byte in data))
    yield _lower(base64.b32encode(data).decode())
    if len(data) >= LONG:
        once = base64.b64encode(data)
        for inner in {wide, once, once.rstrip(b"=")}:
            yield _lower(_joined(base64.b64encode(inner).decode()))
        for sent in {data, quote(data, safe="").encode(), quote_plus(data).encode()}:
            yield from (_lower(_joined(form)) for form in _in_base64(sent))


def _in_base64(data: bytes) -> set[str]:
    """Alone, and after something else, as in a Basic header (`user:secret`): base64 takes three bytes at a time, so
    there are three ways. The characters at the ends depend on the neighbours and stay."""
    forms = {base64.b64encode(data).decode()}
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        end = (before + len(data)) * 8 // 6
        forms.add(whole[(before * 8 + 5) // 6 : end])
    return forms | {form.replace("+", "-").replace("/", "_") for form in forms}


def _form(folded: str, cut: bool) -> _Form:
    return _Form(folded, *((_telling(folded), _telling(folded[::-1])[::-1]) if cut else (folded, folded)))


def _telling(text: str) -> str:
    """The shortest beginning that no word or date has: LONG characters, more when there is no digit among them and at
    most one other sign, or nothing but digits."""
    for length in range(LONG, min(CUT, len(text))):
        head = text[:length]
        signs = sum(2 if c.isdigit() else not c.isalpha() for c in head)
        if signs > 1 and not head.isdigit():
            return head
    return text[:CUT]


# folding


def _joined(text: str) -> str:
    """As `_SPACE` with nothing in its place; this is most of the work, and most texts are simple."""
    if text.isascii() and _NOT_SIMPLE.search(text) is None:
        return "".join(text.split()).replace("+", "")
    return _SPACE.sub("", text)


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _decoded(text: str) -> str:
    for _ in range(LAYERS):
        if _ESCAPES.search(text) is None:
            break
        text = _UNIT.sub(_character, text)
    return text


def _folded(text: str) -> str:
    return _lower(_joined(_decoded(_joined(text))))


def _character(match: re.Match[str]) -> str:
    """What one escape stands for; itself when it stands for nothing."""
    unit = match.group()
    try:
        if unit[:2] in ("%u", "%U"):
            return bytes.fromhex(unit.upper().replace("%U", "")).decode("utf-16-be")
        if unit[0] == "%":
            return _of_bytes(bytes.fromhex(unit.replace("%", "")))
        if unit[0] == "&":
            return _entity(unit)
        return _backslashed(unit)
    except (ValueError, OverflowError):
        return unit


def _of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _entity(unit: str) -> str:
    name = unit[1:].rstrip(";")
    if "#" not in name:
        return html.entities.html5.get(f"{name};") or html.entities.html5.get(f"{name.lower()};") or unit
    digits = name.rpartition("#")[2]
    return chr(int(digits[1:], 16) if digits[0] in "xX" else int(digits))


def _backslashed(unit: str) -> str:
    rest = unit.lstrip("\\")
    if not rest:
        return "\\"
    if rest[0] in "uU":
        units = [part.strip("{}") for part in re.split(r"\\+[uU]", unit)[1:]]
        if len(units) == 2:
            return bytes.fromhex("".join(units)).decode("utf-16-be")
        return chr(int(units[0], 16))
    if rest[0] in "xX":
        return _of_bytes(bytes.fromhex(re.sub(r"\\+[xX]", "", unit)))
    if len(rest) == 3:
        return chr(int(rest, 8))
    return "\n" if rest in "nrtfvab" else rest


def _stages(text: str, needles: Iterable[str], *, spaced: bool) -> Iterator[_Stage]:
    """The text after each layer of decoding that has a needle. The way back is made only for those. One search per
    needle is faster than one pattern of them all, which begins at nearly every character."""
    layer, count = text if spaced else _joined(text), 0
    while True:
        lower = _lower(layer)
        if any(needle in lower for needle in needles):
            yield _traced(text, count, spaced)
        if count == LAYERS or _ESCAPES.search(layer) is None:
            return
        before, layer, count = layer, _UNIT.sub(_character, layer), count + 1
        layer = layer if spaced else _joined(layer)
        if layer == before:
            return


def _traced(text: str, layers: int, spaced: bool) -> _Stage:
    """The text as `_stages` has it after so many layers, and where each of its characters came from."""
    ways: list[_Trace] = []

    def passed(text: str, pattern: re.Pattern[str], plain: Callable[[re.Match[str]], str]) -> str:
        text, way = _substituted(text, pattern, plain)
        ways.append(way)
        return text

    for number in range(layers + 1):
        if number:
            text = passed(text, _UNIT, _character)
        if not spaced:
            text = passed(text, _SPACE, lambda _: "")

    def origin(start: int, end: int) -> tuple[int, int]:
        for way in reversed(ways):
            start, end = way.start(start), way.end(end)
        return start, end

    return _Stage(_lower(text), origin)


class _Trace:
    """Where the pieces of a text were before a substitution."""

    def __init__(self) -> None:
        self._after: list[int] = []
        self._before: list[tuple[int, int, bool]] = []

    def add(self, after: int, start: int, end: int, copied: bool) -> None:
        self._after.append(after)
        self._before.append((start, end, copied))

    def start(self, at: int) -> int:
        after, (start, _, copied) = self._piece(at)
        return start + at - after if copied else start

    def end(self, at: int) -> int:
        after, (start, end, copied) = self._piece(at - 1)
        return start + at - after if copied else end

    def _piece(self, at: int) -> tuple[int, tuple[int, int, bool]]:
        index = bisect_right(self._after, at) - 1
        return self._after[index], self._before[index]


def _substituted(text: str, pattern: re.Pattern[str], plain: Callable[[re.Match[str]], str]) -> tuple[str, _Trace]:
    trace, parts, length, done = _Trace(), list[str](), 0, 0
    for match in pattern.finditer(text):
        for part, start, end, copied in (
            (text[done : match.start()], done, match.start(), True),
            (plain(match), match.start(), match.end(), False),
        ):
            trace.add(length, start, end, copied)
            parts.append(part)
            length += len(part)
        done = match.end()
    trace.add(length, done, len(text), True)
    return "".join((*parts, text[done:])), trace


# spans


def _found(text: str, needle: str) -> Iterator[tuple[int, int]]:
    at = text.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = text.find(needle, at + 1)


def _alike(one: str, other: str) -> int:
    if one == other:
        return len(one)
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
