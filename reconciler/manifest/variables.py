"""References in values: `${var:NAME}`, `${env:NAME}`, `${file:PATH}`, each with `:-default`; `$${` writes a plain `${`.

A text is parsed once, and its references are replaced in the parts. What a reference stands for is never parsed, alone
or with what stands beside it: neither a value that contains `${...}` nor a `$` before `{env:NAME}` expands further.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.manifest.limits import UNLIMITED, Limits
from reconciler.manifest.missing import Missing
from reconciler.manifest.nearest import nearest
from reconciler.regular_files import read_regular

MAX_FILE = 1 << 20
MAX_TROUBLES = 20
"""Per value: more would say nothing new."""
MAX_EXPANSION = 16 << 20
"""Characters that references may add, per manifest file: a small file cannot repeat a large value without end."""

_TOKEN = re.compile(r"\$\$\{|\$\{")
_REFERENCE = re.compile(r"\$\{(var|env|file):([^}]*?)(?::-([^}]*))?\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

_ALMOST = 0.8
Kind = Literal["var", "env", "file"]


@dataclass(frozen=True, slots=True)
class Trouble:
    code: str
    offset: int
    message: str
    hint: str = ""


@dataclass(slots=True)
class Expanded:
    text: str
    troubles: list[Trouble] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    """Values that came from the environment or from files."""
    whole: bool = False
    """The text was one reference and nothing else."""
    unknown: bool = False
    """It has references that were left as they are, because nothing is to be resolved."""
    empty: list[tuple[int, str]] = field(default_factory=list)
    """References that stand for nothing, or for white space: where, and `${env:NAME}`."""


def _parsed(text: str) -> Iterator[str | int | re.Match[str]]:
    """The parts of a text, in one pass: what stands for itself, references, and where what looks like one begins."""
    at = 0
    while token := _TOKEN.search(text, at):
        yield text[at : token.start()]
        at = token.end()
        if token.group() == "$${":
            yield "${"
        elif (reference := _REFERENCE.match(text, token.start())) is not None:
            at = reference.end()
            yield reference
        else:
            yield token.start()
    yield text[at:]


class _Writer:
    """Parts to text. `late`: a text that is parsed once more, when the references that are left are resolved, into the
    same parts. What stands for itself is escaped as a whole: values may make a `${` only together."""

    def __init__(self, late: bool) -> None:
        self._late = late
        self._literal = ""
        self._done: list[str] = []

    def literal(self, text: str) -> None:
        self._literal += text

    def reference(self, reference: re.Match[str]) -> Trouble | None:
        """One that is left as it is."""
        ends_with_dollar = self._late and self._literal.endswith("$")
        self._done += [self._flushed(), reference.group()]
        if not ends_with_dollar:
            return None
        hint = "give the `$` and what follows it in one variable, or in what the reference stands for"
        return Trouble("M300", reference.start(), "a `$` from a variable stands right before a reference", hint)

    def text(self) -> str:
        return "".join([*self._done, self._flushed()])

    def _flushed(self) -> str:
        literal, self._literal = self._literal, ""
        return literal.replace("${", "$${") if self._late else literal


@dataclass(slots=True)
class Resolver:
    variables: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] | None = None
    room: int = MAX_EXPANSION
    _files: dict[str, str | Trouble] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    """The variables that were asked for, since somebody emptied it."""
    limits: Limits = UNLIMITED
    missing: Missing = field(default_factory=Missing)

    def expand(self, text: str, *, late: bool = False) -> Expanded:
        """`late`: leave `${env:}`, `${file:}` and `$${` for the moment of connecting, and keep a variable's own `${`
        from becoming a reference then. The options of a catalog are read so: what is malformed in them is pointed at
        and not repeated, as it may be a password."""
        if not late and self.limits.resolve and (whole := _REFERENCE.fullmatch(text)):
            value = self._value(whole.group(1), whole.group(2), whole.group(3), 0)
            if isinstance(value, str) and len(value) <= self.room:
                self.room -= len(value)
                used = [] if whole.group(1) == "var" else [value]
                return Expanded(value, used=used, whole=True, empty=_if_empty(whole, value))
        result = Expanded("")
        written = _Writer(late)
        for part in _parsed(text):
            if len(result.troubles) >= MAX_TROUBLES:
                break
            if isinstance(part, str):
                written.literal(part)
            elif isinstance(part, int):
                result.troubles.append(_malformed(text, part, repeat=not late))
                written.literal("${")
            elif not self._replaced(part, written, result, late):
                break
            else:
                result.whole = part.group() == text
        result.text = written.text()
        return result

    def _replaced(self, reference: re.Match[str], written: _Writer, result: Expanded, late: bool) -> bool:
        """Writes what one reference stands for, or the reference itself. False: there is no room for more."""
        kind, name, default = reference.group(1, 2, 3)
        start = reference.start()
        left = kind != "var" and (late or not self.limits.resolve)
        bad = self._refused(kind, name, start, late) if late or left else None
        if left:
            bad = written.reference(reference) or bad
            result.unknown = not late
        if bad or left:
            result.troubles += [bad] if bad else []
            return True
        value = self._value(kind, name, default, start)
        if isinstance(value, Trouble):
            result.troubles.append(value)
            return True
        self.room -= len(value)
        if self.room < 0:
            result.troubles.append(Trouble("M109", start, "references make this file too large"))
            return False
        if kind != "var":
            result.used.append(value)
        result.empty += _if_empty(reference, value)
        written.literal(value)
        return True

    def plain(self, text: str) -> str:
        """The text as part of an identity: one that cannot be resolved stands for itself."""
        expanded = self.expand(text) if "${" in text else None
        return text if expanded is None or expanded.troubles else expanded.text

    def _refused(self, kind: str, name: str, offset: int, late: bool = False) -> Trouble | None:
        bad = _check_name(kind, name, offset, repeat=not late)
        if bad is None and (self.limits.late or not late) and (beyond := self.limits.problem(kind, name)):
            code, message, hint = beyond
            return Trouble(code, offset, message, hint)
        return bad

    def _value(self, kind: str, name: str, default: str | None, offset: int) -> str | Trouble:
        bad = self._refused(kind, name, offset)
        if bad:
            return bad
        if kind == "file":
            return self._file(name, default, offset)
        if kind == "var":
            self.asked.add(name)
        values = self.variables if kind == "var" else os.environ if self.environ is None else self.environ
        value = values.get(name)
        if value is not None:
            return value
        if default is not None:
            return default
        if kind == "env":
            hint = f"{self._meant(name, values)}set it, or give a default: ${{env:{name}:-value}}"
            return Trouble("M302", offset, f"the environment variable {name} is not set", hint)
        near = nearest(name, values)
        hint = (
            f"did you mean {near}?"
            if near
            else f"give it with --var {name}=VALUE, in a Variables document, or a default: ${{var:{name}:-value}}"
        )
        return Trouble("M301", offset, f"the variable {name} is not defined", hint)

    def _meant(self, name: str, environ: Mapping[str, str]) -> str:
        """Only a name that could be used here, and only a very near one: others are nobody's business."""
        usable = [n for n in environ if self.limits.problem("env", n) is None and _NAME.fullmatch(n)]
        near = nearest(name, usable, _ALMOST)
        return f"did you mean {near}? Or " if near else ""

    def _file(self, path: str, default: str | None, offset: int) -> str | Trouble:
        if path not in self._files:
            self._files[path] = _read(path)
        found = self._files[path]
        if isinstance(found, str):
            return found
        if default is not None and found.code == _MISSING:
            return default
        return Trouble("M303", offset, found.message, found.hint)


def _if_empty(reference: re.Match[str], value: str) -> list[tuple[int, str]]:
    return [] if value.strip() else [(reference.start(), f"${{{reference.group(1)}:{reference.group(2)}}}")]


_MISSING = "missing"


def _read(path: str) -> str | Trouble:
    """One trailing newline is dropped, as editors and secret mounts add it. Messages never quote the content."""
    try:
        data = read_regular(path, MAX_FILE)
    except FileNotFoundError:
        relative = "the path is relative to the working directory"
        hint = "check the path, and that what holds it is mounted" if os.path.isabs(path) else relative
        return Trouble(_MISSING, 0, f"the file {path} does not exist", hint)
    except (OSError, ValueError) as error:
        return Trouble("M303", 0, f"the file {path} cannot be read: {getattr(error, 'strerror', None) or error}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Trouble("M303", 0, f"the file {path} is not UTF-8")
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith("\n") else text


def _check_name(kind: str, name: str, offset: int, repeat: bool = True) -> Trouble | None:
    if kind == "file":
        return None if name else Trouble("M300", offset, "${file:} needs a path")
    if _NAME.fullmatch(name):
        return None
    what = repr(name) if repeat else f"what follows `${{{kind}:`"
    return Trouble("M300", offset, f"{what} is not a name", "names have letters, digits, '_', '.' and '-'")


def _malformed(text: str, start: int, repeat: bool) -> Trouble:
    end = text.find("}", start)
    inner = text[start + 2 : end] if end >= 0 else ""
    hint = "references are ${env:NAME}, ${file:PATH} and ${var:NAME}; $${ gives a plain ${"
    shown = "what begins with `${`"
    if repeat:
        shown = text[start : end + 1] if end >= 0 else text[start : start + 20]
        if _NAME.fullmatch(inner):
            hint = f"write ${{env:{inner}}} or ${{var:{inner}}}; $${{ gives a plain ${{"
    what = "is not closed" if end < 0 else "is not a reference"
    return Trouble("M300", start, f"{shown} {what}", hint)


def escaped(value: Any) -> Any:
    """Text in which `${` is no reference, in whatever it stands."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {k: escaped(v) for k, v in value.items()}
    return [escaped(v) for v in value] if isinstance(value, list) else value
