"""Which names in a folder are those of manifests, and which were almost certainly meant to be.

A manifest that is skipped for its name makes what it declares look like an orphan. Names that tools and people give to
what they put aside (`.bak`, `.orig`, `.swp`) are not meant to be read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

SUFFIXES = (".yaml", ".yml")
_WORDS = ("yaml", "yml")
_TAIL = re.compile(r"[\W_]+\Z")
_MORE = re.compile(r"(.*?\.ya?ml)[\W_]+(.*)", re.DOTALL | re.IGNORECASE)
_PUT_ASIDE = re.compile(r"bak\w*|backup|orig|old|saved?|rej|sw[a-p]|te?mp|example|sample|dist")
_OTHER_MARK = re.compile(r"[\W_]ya?ml\Z")


def is_manifest(name: str) -> bool:
    """In either case: a `T.YAML` that nobody reads would look like a table that nobody declares."""
    return name.lower().endswith(SUFFIXES)


def almost_manifest(name: str, beside: Collection[str]) -> bool:
    """A slip in the ending: something after it (`.yml `, `.yaml.`, `.yaml.txt`), letters exchanged, doubled or left out
    (`.yalm`), another mark in place of the dot; or a form of a manifest (`.yaml.j2`, `.yaml.gz`, `.yaml.off`) without
    the manifest beside it. `t.yaml~` beside `t.yaml` is the backup of an editor."""
    if name.startswith("#") or (name.endswith("~") and name[:-1] in beside):
        return False
    more = _MORE.fullmatch(name)
    if more is not None and more[2].strip(". \u00a0~") and not more[2].lower().startswith("txt"):
        words = re.split(r"[\W_]+", more[2].lower())
        return more[1] not in beside and not any(_PUT_ASIDE.fullmatch(word) for word in words)
    bare = _bare(name)
    while bare.endswith(".txt"):
        bare = _bare(bare.removesuffix(".txt"))
    stem, dot, suffix = bare.rpartition(".")
    if not dot:
        return bare.endswith(_WORDS)
    return suffix in _WORDS or bool(_OTHER_MARK.search(bare)) or (bool(stem) and _misspelt(suffix))


def _bare(name: str) -> str:
    return _TAIL.sub("", unicodedata.normalize("NFKC", name).lower())


def _misspelt(suffix: str) -> bool:
    """`.ml`, `.xml`, `.aml` are endings of their own: one letter may differ after the `y`, or where it is no ASCII
    (another alphabet's look-alike)."""
    if any(sorted(suffix) == sorted(word) for word in _WORDS):
        return True
    return (suffix.startswith("y") or not suffix.isascii()) and any(_one_off(suffix, word) for word in _WORDS)


def _one_off(one: str, other: str) -> bool:
    """One letter more, less, or another one."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    same = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return short[same + (len(short) == len(long)) :] == long[same + 1 :]
