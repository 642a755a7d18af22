"""Which file an imported object goes to: `CATALOG/NAMESPACE/PATH.yaml`, the tables beside their namespace; or, split by
table, `CATALOG/NAMESPACE/PATH/TABLE.yaml`.

The names of live objects are anything; those of the files are good on every file system, and never lead out of the
folder or to a place that manifests are not read from. Two names that are one to some file systems get two files.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote

from reconciler.manifest.files import SKIPPED_FOLDERS
from reconciler.manifest.suffixes import is_manifest
from reconciler.model.ident import Ident, parent

CATALOG_FILE = "catalog"
ROOT_TABLES = "root-tables"
_LONGEST = 120
"""Bytes of a name: file systems take 255, some that encrypt 143, and a temporary file has a longer one."""
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
"""Windows opens a device, whatever the suffix."""


def safe_name(name: str) -> str:
    """Letters and digits of all scripts, `_`, `-` and `.` stay; everything else is written as `%XX`, and so is the
    first character of a name that means something to a shell, to Windows or to the reader of manifests."""
    if unicodedata.normalize("NFC", name) != name:  # Some file systems would give it back in another form.
        out = quote(name, safe="")
    else:
        out = "".join(c if c.isalnum() or c in "_-." else _encoded(c) for c in name)
    out = re.sub(r"\.+$", lambda dots: "%2E" * len(dots.group()), out)
    if is_manifest(out):  # As a folder it would stand where another namespace has its file.
        head, _, tail = out.rpartition(".")
        out = f"{head}%2E{tail}"
    if out[:1] in (".", "-") or _DEVICES.fullmatch(out) or out.lower() in SKIPPED_FOLDERS:
        out = _encoded(out[0]) + out[1:]
    if len(out.encode()) > _LONGEST:
        out = f"{_cut(out, _LONGEST - 17)}~{_digest(name)[:16]}"
    return out


def _encoded(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def _cut(text: str, length: int) -> str:
    return re.sub(r"%[0-9A-F]?$", "", text.encode()[:length].decode("utf-8", "ignore"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Layout:
    """The files of one catalog, as parts of a path below the folder of all. Made from everything that is live, so that
    a name does not depend on what was selected."""

    def __init__(self, catalog: str, split: bool, namespaces: Iterable[Ident], tables: Iterable[Ident]) -> None:
        self._split = split
        self._catalog = (safe_name(catalog),)
        self._taken: dict[tuple[str, ...], set[str]] = {}
        self._folders: dict[Ident, tuple[str, ...]] = {(): self._catalog}
        self._tables: dict[Ident, tuple[str, ...]] = {}
        self._claim(self._catalog, CATALOG_FILE, ())
        self._root = self._claim(self._catalog, ROOT_TABLES, ())
        tables = sorted(tables)
        above = {t[:n] for t in tables for n in range(1, len(t))}
        for ident in sorted({*above, *(i[:n] for i in namespaces for n in range(1, len(i) + 1))}):
            self._folders[ident] = self._claim(self._folders[parent(ident)], safe_name(ident[-1]), ident)
        for ident in tables if split else ():
            self._tables[ident] = self._claim(self._beside(ident), safe_name(ident[-1]), ident)

    def _beside(self, table: Ident) -> tuple[str, ...]:
        return self._folders[parent(table)] if len(table) > 1 else self._root

    def _claim(self, folder: tuple[str, ...], name: str, ident: Ident) -> tuple[str, ...]:
        taken = self._taken.setdefault(folder, set())
        if _folded(name) in taken:
            name = f"{name}~{_digest(repr(ident))[:8]}"
        taken.add(_folded(name))
        return (*folder, name)

    def catalog_file(self) -> str:
        return _file((*self._catalog, CATALOG_FILE))

    def namespace_file(self, ident: Ident) -> str:
        return _file(self._folders[ident])

    def table_file(self, ident: Ident) -> str:
        return _file(self._tables[ident] if self._split else self._beside(ident))


def _file(parts: tuple[str, ...]) -> str:
    return "/".join(parts) + ".yaml"


def _folded(name: str) -> str:
    """Equal for names that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
