"""Takes secret values out of whatever leaves the program.

Secrets do not get into plans, reports and messages by design; what a library puts into an exception or a log is not
under our control, so every text passes through here as well.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import quote, unquote, urlsplit

from reconciler.catalog.known_secrets import listen
from reconciler.model.desired import CatalogSpec
from reconciler.model.plan import Json

MASK = "***"
SHORTEST = 4
"""Shorter values are words like `1` or `on`: hiding them would garble every text and protect nothing."""
LONG = 8
"""From here on the base64 of a secret is long enough not to be part of anything else."""
PLAIN = re.compile(r"true|false|none|null|[0-9.]{1,6}", re.IGNORECASE)


class Redactor:
    """Thread-safe. Knows the secrets of all catalogs connected so far, and what they learn."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._open: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._content_pattern: re.Pattern[str] | None = None
        self.add(secrets)
        listen(self)

    def add(self, secrets: Iterable[str], harmless: Iterable[str] = ()) -> None:
        """`harmless`: those that are taken out of messages only, such as a region. A value that was added without being
        called so stays a secret everywhere."""
        found, harmless = frozenset(filter(_worth_hiding, secrets)), frozenset(harmless)
        with self._lock:
            openly = (self._open | (harmless - self._secrets)) - (found - harmless)
            if found <= self._secrets and openly == self._open:
                return
            self._secrets |= found
            self._open = openly
            self._pattern = _pattern(self._secrets)
            self._content_pattern = _pattern(self._secrets - openly)

    def text(self, text: str) -> str:
        """For messages, which come from services and libraries."""
        pattern = self._pattern
        return without_userinfo(pattern.sub(MASK, text) if pattern is not None else text)

    def content(self, text: str) -> str:
        """For names and values, which people chose: a bucket may well be named after its region."""
        pattern = self._content_pattern
        return without_userinfo(pattern.sub(MASK, text) if pattern is not None else text)

    def value(self, value: Json) -> Json:
        """Every string in a JSON value, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(v) for v in value]
        if isinstance(value, dict):
            return {self.text(k): self.value(v) for k, v in value.items()}
        return value


_USERINFO = re.compile(
    r"\b([A-Za-z][A-Za-z0-9+.-]*)://"
    r"([^\s/?#\"'<>]*"
    r"|(?!\[)[^\s/?#\"'<>:]*:(?!\d+/)[^\s\"'<>]*"  # a password with a slash in it, which is not a port
    r")@"
)
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})


def without_userinfo(text: str) -> str:
    """`s3://user:password@host/x` as `s3://***@host/x`, wherever it stands in the text. Azure writes a container in
    that place, which is no secret."""
    return _USERINFO.sub(_masked, text) if "://" in text and "@" in text else text


def _masked(match: re.Match[str]) -> str:
    scheme, userinfo = match.groups()
    if scheme.lower() in _CONTAINERS and ":" not in userinfo:
        return match.group()
    return f"{scheme}://{MASK}@"


class RedactingFormatter(logging.Formatter):
    """For all loggers, those of libraries included; tracebacks too."""

    def __init__(self, redactor: Redactor, layout: str) -> None:
        super().__init__(layout)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Longest first: a secret that starts with another one is hidden whole."""
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=lambda s: (-len(s), s))
    return re.compile("|".join(map(re.escape, forms))) if forms else None


def _worth_hiding(secret: str) -> bool:
    return len(secret) >= SHORTEST and PLAIN.fullmatch(secret) is None


def _forms(secret: str) -> set[str]:
    """As it is, and as it looks in a URL, in JSON, in a Python repr and in base64; each line of a multi-line one and
    the password in a URL too."""
    forms = {
        secret,
        secret.strip(),
        quote(secret, safe=""),
        quote(secret),
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
    }
    forms |= {line.strip() for line in secret.splitlines()}
    with contextlib.suppress(ValueError):
        password = urlsplit(secret).password or ""
        forms |= {password, unquote(password)}
    return {f for f in forms | _in_base64(secret) if len(f) >= SHORTEST}


def _in_base64(secret: str) -> set[str]:
    """Alone, and after something else, as in a Basic header (`user:secret`): base64 takes three bytes at a time, so
    there are three ways. The characters at the ends depend on the neighbours and stay."""
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) < LONG:
        return set()
    forms = {base64.b64encode(data).decode()}
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        end = (before + len(data)) * 8 // 6
        forms.add(whole[(before * 8 + 5) // 6 : end])
    return forms | {form.replace("+", "-").replace("/", "_") for form in forms}


_REFERENCES = re.compile(r"(\$\{(env|file):[^}:]+\})+")


def without_literal_secrets(spec: CatalogSpec, is_secret: Callable[[str], bool]) -> CatalogSpec:
    """The spec as it may be written down: a secret that stands in the manifest itself, rather than behind `${env:}` or
    `${file:}`, becomes a reference to an environment variable, so that whoever reads the text can still supply it.
    So does a URI with a password in it, whatever its key."""
    taken = literal_secrets(spec, is_secret)
    options = {k: reference_for(spec.name, k) if k in taken else v for k, v in spec.options.items()}
    return replace(spec, options=options)


def literal_secrets(spec: CatalogSpec, is_secret: Callable[[str], bool]) -> list[str]:
    """The keys that `without_literal_secrets` replaces."""
    return sorted(k for k, v in spec.options.items() if (is_secret(k) and _literal(v)) or _with_userinfo(v))


def literal_warning(spec: CatalogSpec, is_secret: Callable[[str], bool], where: str) -> str | None:
    """Says which variables stand in for what `without_literal_secrets` took out; None when it took out nothing."""
    keys = literal_secrets(spec, is_secret)
    if not keys:
        return None
    names = ", ".join(reference_for(spec.name, key)[len("${env:") : -1] for key in keys)
    return (
        f"warning: catalog {spec.name}: the values of {', '.join(keys)} stand in the manifest and are not copied to "
        f"{where}. To use it, set {names}; better, write ${{env:NAME}} or ${{file:PATH}} in the manifest."
    )


def reference_for(catalog: str, key: str) -> str:
    return "${env:RECONCILER_" + re.sub(r"[^A-Z0-9]+", "_", f"{catalog}_{key}".upper()) + "}"


def _literal(value: object) -> bool:
    """Whatever its length: `_worth_hiding` is about words in a text, and here it is known that the value is a secret.
    Only `true` and `false` (and nothing at all) cannot be one."""
    if isinstance(value, bool) or value is None:
        return False
    text = str(value)
    return text.lower() not in ("", "true", "false") and _REFERENCES.fullmatch(text) is None


def _with_userinfo(value: object) -> bool:
    """A URI whose user or password is written out."""
    uris = _USERINFO.finditer(_REFERENCES.sub("", value)) if isinstance(value, str) else ()
    return any(_masked(uri) != uri.group() and uri.group(2).strip(":") for uri in uris)
