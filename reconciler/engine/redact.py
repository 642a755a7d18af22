"""Takes secret values out of whatever leaves the program.

Secrets do not get into plans, reports and messages by design; what a library puts into an exception or a log is not
under our control, so every text passes through here as well.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from reconciler.catalog.known_secrets import listen
from reconciler.core.secret_forms import SecretForms, worth_hiding
from reconciler.model.desired import CatalogSpec
from reconciler.model.plan import Json

MASK = "***"


class Redactor:
    """Thread-safe. Knows the secrets of all catalogs connected so far, and what they learn."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._open: frozenset[str] = frozenset()
        self._forms = self._content_forms = SecretForms(())
        self.add(secrets)
        listen(self)

    def add(self, secrets: Iterable[str], harmless: Iterable[str] = ()) -> None:
        """`harmless`: those that are taken out of messages only, such as a region. A value that was added without being
        called so stays a secret everywhere."""
        found, harmless = frozenset(filter(worth_hiding, secrets)), frozenset(harmless)
        with self._lock:
            openly = (self._open | (harmless - self._secrets)) - (found - harmless)
            if found <= self._secrets and openly == self._open:
                return
            self._secrets |= found
            self._open = openly
            self._forms = SecretForms(self._secrets, whole=openly)
            self._content_forms = SecretForms(self._secrets - openly)

    def text(self, text: str) -> str:
        """For messages, which come from services and libraries."""
        return without_userinfo(self._forms.masked(text, MASK))

    def content(self, text: str) -> str:
        """For names and values, which people chose: a bucket may well be named after its region."""
        return without_userinfo(self._content_forms.masked(text, MASK))

    def value(self, value: Json, clean: Callable[[str], str] | None = None) -> Json:
        """Every string in a JSON value, keys included; as in messages unless `clean` says otherwise."""
        clean = clean or self.text
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, list):
            return [self.value(v, clean) for v in value]
        if isinstance(value, dict):
            return {clean(k): self.value(v, clean) for k, v in value.items()}
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
    """Whatever its length: `worth_hiding` is about words in a text, and here it is known that the value is a secret.
    Only `true` and `false` (and nothing at all) cannot be one."""
    if isinstance(value, bool) or value is None:
        return False
    text = str(value)
    return text.lower() not in ("", "true", "false") and _REFERENCES.fullmatch(text) is None


def _with_userinfo(value: object) -> bool:
    """A URI whose user or password is written out."""
    uris = _USERINFO.finditer(_REFERENCES.sub("", value)) if isinstance(value, str) else ()
    return any(_masked(uri) != uri.group() and uri.group(2).strip(":") for uri in uris)
