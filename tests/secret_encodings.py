"""The ways in which services, libraries and renderers write a text that they repeat: the table of what is redacted."""

from __future__ import annotations

import base64
import html
import json
import textwrap
from collections.abc import Callable
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

Encoding = Callable[[str], str]


def _lower_hex(text: str) -> str:
    return "".join(part.lower() if part.startswith("%") else part for part in _percents(text))


def _percents(text: str) -> list[str]:
    out: list[str] = []
    while text:
        size = 3 if text[0] == "%" else 1
        out.append(text[:size])
        text = text[size:]
    return out


def _json_units(text: str) -> str:
    """Every character as `\\uXXXX`, with surrogate pairs."""
    data = text.encode("utf-16-be")
    return "".join(f"\\u{data[n : n + 2].hex()}" for n in range(0, len(data), 2))


def _base64(before: str = "", after: str = "", url: bool = False, pad: bool = True) -> Encoding:
    encode = base64.urlsafe_b64encode if url else base64.b64encode

    def encoded(text: str) -> str:
        told = encode(f"{before}{text}{after}".encode()).decode()
        return told if pad else told.rstrip("=")

    return encoded


def _once_more(inner: Encoding, outer: Encoding) -> Encoding:
    return lambda text: outer(inner(text))


ENCODINGS: dict[str, Encoding] = {
    "plain": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "html": html.escape,
    "html without quotes": lambda t: html.escape(t, quote=False),
    "html twice": lambda t: html.escape(html.escape(t)),
    "html in upper case": lambda t: html.escape(t).upper(),
    "xml": lambda t: escape(t, {"'": "&apos;", '"': "&quot;"}),
    "decimal entities": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "decimal entities with zeros": lambda t: "".join(f"&#{ord(c):05d};" for c in t),
    "hex entities": lambda t: "".join(f"&#x{ord(c):x};" for c in t),
    "upper hex entities": lambda t: "".join(f"&#X{ord(c):02X};" for c in t),
    "hex": lambda t: t.encode().hex(),
    "upper hex": lambda t: t.encode().hex().upper(),
    "hex with colons": lambda t: t.encode().hex(":"),
    "hex with spaces": lambda t: t.encode().hex(" "),
    "hex with hyphens": lambda t: t.encode().hex("-"),
    "hex literals": lambda t: ", ".join(f"0x{b:02x}" for b in t.encode()),
    "upper hex literals": lambda t: ", ".join(f"0x{b:02X}" for b in t.encode()),
    "a list of bytes": lambda t: str(list(t.encode()))[1:-1],
    "a list of bytes as Go prints it": lambda t: " ".join(map(str, t.encode())),
    "zeros between": lambda t: "".join(f"{c}\0" for c in t),
    "zeros between, escaped": lambda t: repr("".join(f"{c}\0" for c in t))[1:-1],
    "hex of utf-16": lambda t: t.encode("utf-16-le").hex(),
    "quoted-printable": lambda t: "".join(f"={b:02X}" for b in t.encode()),
    "every character as %uXXXX": lambda t: _json_units(t).replace("\\u", "%u"),
    "url": lambda t: quote(t, safe=""),
    "url with slashes": quote,
    "url in lower case": lambda t: _lower_hex(quote(t, safe="")),
    "form": quote_plus,
    "url twice": lambda t: quote(quote(t, safe=""), safe=""),
    "form twice, lower case": lambda t: _lower_hex(quote_plus(quote_plus(t))),
    "url three times": lambda t: quote(quote(quote(t, safe=""), safe=""), safe=""),
    "every byte in url form": lambda t: "".join(f"%{b:02X}" for b in t.encode()),
    "json": lambda t: json.dumps(t)[1:-1],
    "json, not ascii": lambda t: json.dumps(t, ensure_ascii=False)[1:-1],
    "json with \\/": lambda t: json.dumps(t)[1:-1].replace("/", "\\/"),
    "json twice": lambda t: json.dumps(json.dumps(t))[3:-3],
    "every character as \\uXXXX": _json_units,
    "\\uXXXX in upper case": lambda t: _json_units(t).upper(),
    "html safe json": lambda t: "".join(f"\\u{ord(c):04x}" if c in "<>&'\"" else c for c in t).replace("/", "\\/"),
    "python repr": lambda t: repr(t)[1:-1],
    "ascii": lambda t: ascii(t)[1:-1],
    "repr of bytes": lambda t: repr(t.encode())[2:-1],
    "every byte as \\xXX": lambda t: "".join(f"\\x{b:02x}" for b in t.encode()),
    "rust debug": lambda t: "".join(f"\\u{{{ord(c):x}}}" if not c.isalnum() else c for c in t),
    "octal": lambda t: "".join(f"\\{b:03o}" for b in t.encode("latin-1", "ignore")),
    "base64": _base64(),
    "base64 without padding": _base64(pad=False),
    "base64 for urls": _base64(url=True),
    "base64 for urls without padding": _base64(url=True, pad=False),
    "base64 twice": _once_more(_base64(), _base64()),
    "base64 of utf-16": lambda t: base64.b64encode(t.encode("utf-16-le")).decode(),
    "base32": lambda t: base64.b32encode(t.encode()).decode(),
    "basic, user of 1": _base64("u:"),
    "basic, user of 2": _base64("us:"),
    "basic, user of 3": _base64("use:", pad=False),
    "base64 in a text": _base64("x", "\n", url=True),
    "basic with a form": _once_more(quote_plus, _base64("us:")),
    "url of base64": _once_more(_base64(), lambda t: quote(t, safe="")),
    "html of json": _once_more(lambda t: json.dumps(t)[1:-1], html.escape),
    "json of html": _once_more(html.escape, lambda t: json.dumps(t)[1:-1]),
    "url of json": _once_more(lambda t: json.dumps(t)[1:-1], lambda t: quote(t, safe="")),
    "html of url": _once_more(quote_plus, html.escape),
    "wrapped": lambda t: "\n".join(textwrap.wrap(t, 9)),
    "wrapped and indented": lambda t: "\r\n      ".join(t[n : n + 7] for n in range(0, len(t), 7)),
    "wrapped with a backslash": lambda t: "\\\n".join(t[n : n + 7] for n in range(0, len(t), 7)),
    "wrapped with an escaped line end": lambda t: "\\n".join(t[n : n + 7] for n in range(0, len(t), 7)),
    "base64 in lines": _once_more(_base64("u:"), lambda t: "\n".join(t[n : n + 16] for n in range(0, len(t), 16))),
    "broken by zero width spaces": lambda t: "\u200b".join(t[n : n + 4] for n in range(0, len(t), 4)),
    "entities cut by a line end": lambda t: "&#\n".join("".join(f"&#{ord(c)};" for c in t).split("&#")),
    "cut to 15": lambda t: t[:15],
    "cut in the middle": lambda t: t[: len(t) // 2 + 1],
    "without its last character": lambda t: t[:-1],
    "without its beginning": lambda t: t[-15:],
    "cut base64": lambda t: _base64()(t)[:16],
    "cut url form": lambda t: "".join(_percents(quote(t, safe=""))[:15]),
    "cut html, upper case": lambda t: html.escape(t[:15]).upper(),
}

NASTY = "p&s's/W0\"rd<8>+ü=\\ %2Fz~end99"
"""Each encoding has something to do in it."""


def pieces(encoded: str) -> set[str]:
    """Every part of it that a reader could put together again: what may be in no output."""
    size = min(7, len(encoded))
    found = {encoded[n : n + size] for n in range(len(encoded) - size + 1)}
    return {piece for piece in found if not any(c.isspace() or c == "\u200b" for c in piece)}
