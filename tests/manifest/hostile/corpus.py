# ruff: noqa: E501 - tables of cases read best one to a line
"""Hostile files of one megabyte, made in code. Run as a script: loads those named and prints what each took."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SIZE = 1_000_000
HEAD = "apiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {catalog: c, id: [t]}\nspec:\n"
NAMESPACE = "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: c, id: [n#]}\n"
IGNORING = "---\napiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: c}\nspec:\n  type: dir\n  path: p\n  management:\n   ignore:\n"


def fill(unit: str, before: str = "", after: str = "") -> bytes:
    return (before + unit * ((SIZE - len(before) - len(after)) // len(unit)) + after).encode()


def numbered(pattern: str, before: str = "", after: str = "") -> bytes:
    parts, size, i = [before], len(before), 0
    while size < SIZE:
        parts.append(pattern.replace("#", str(i)))
        size += len(parts[-1])
        i += 1
    return ("".join(parts) + after).encode()


def two_lists(column: str, other: str, key: str, last: str = "") -> bytes:
    """Just below the number of values at which a document is refused unread."""
    return halves(column, other, last + key, HEAD + "  schema:\n", 8_000)


def halves(first: str, second: str, between: str, before: str = "", most: int = SIZE) -> bytes:
    """As many of the one as of the other: what is looked up in a list for each member of another list shows here."""
    parts = [[before], [between]]
    size = i = 0
    while size < SIZE and i < most:
        for n, pattern in enumerate((first, second)):
            parts[n].append(pattern.replace("#", str(i)))
            size += len(parts[n][-1])
        i += 1
    return "".join(parts[0] + parts[1]).encode()


def laughs() -> bytes:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 90)]
    return "\n".join(lines).encode()


CORPUS: dict[str, Callable[[], bytes]] = {
    "flow brackets": lambda: fill("["),
    "flow braces": lambda: fill("{a: "),
    "block dashes": lambda: fill("- "),
    "question marks": lambda: fill("? "),
    "wide flow list": lambda: fill("a,", "[", "]"),
    "wide flow map": lambda: fill("a,", "{", "}"),
    "wide numbered map": lambda: numbered("k#: v, ", "{", "}"),
    "wide numbered lines": lambda: numbered("k#: v\n"),
    "one-letter list": lambda: fill("-\n"),
    "empty pairs": lambda: fill("[],", "[", "]"),
    "pairs of pairs": lambda: fill("[{}],", "[", "]"),
    "duplicate keys": lambda: fill("a: b\n"),
    "documents": lambda: fill("--- a\n"),
    "empty documents": lambda: fill("---\n"),
    "end markers": lambda: fill("...\n"),
    "mappings": lambda: fill("---\n{}\n"),
    "broken documents": lambda: fill("---\n]\n"),
    "broken quotes": lambda: fill("---\n'\n"),
    "tags": lambda: numbered("%TAG !a#! x\n"),
    "comments": lambda: fill("#\n"),
    "blank lines": lambda: fill("\n"),
    "spaces": lambda: fill(" "),
    "tabs": lambda: fill("\t"),
    "one long plain word": lambda: fill("a"),
    "one long quoted string": lambda: fill("a", '"', '"'),
    "escapes": lambda: fill("\\x41", '"', '"'),
    "folded lines": lambda: fill("a\n", '"', '"'),
    "blank lines in quotes": lambda: fill("\n", '"', '"'),
    "plain lines": lambda: fill("a\n "),
    "block scalar": lambda: fill("\n", "a: |\n", " x"),
    "block scalar growing indent": lambda: ("a: |\n" + "".join(" " * i + "\n" for i in range(1, 1400))).encode(),
    "anchors": lambda: numbered("- &a# x\n"),
    "aliases": lambda: fill("- *a\n", "- &a x\n"),
    "unknown aliases": lambda: fill("- *a\n"),
    "laughs": laughs,
    "merge keys": lambda: numbered("k#: {<<: *a}\n", "a: &a {" + ", ".join(f"m{i}: v" for i in range(300)) + "}\n"),
    "merge chain": lambda: ("a0: &a0 {x: y}\n" + "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: v}}\n" for i in range(1, 20_000))).encode(),
    "nul": lambda: b"\0" * SIZE,
    "control characters": lambda: b"\x07" * SIZE,
    "not utf-8": lambda: b"\xff\xfa" * (SIZE // 2),
    "utf-16": lambda: ("a: b\n" * (SIZE // 10)).encode("utf-16"),
    "byte order marks": lambda: b"\xef\xbb\xbf" * (SIZE // 3),
    "long number": lambda: fill("9"),
    "long sexagesimal": lambda: fill(":59", "1"),
    "long float": lambda: fill("9", "1."),
    "underscores": lambda: fill("_", "1"),
    "property surprises": lambda: numbered("    k#: no\n", HEAD + "  properties:\n"),
    "many columns": lambda: numbered("  - {name: c#, type: int64}\n", HEAD + "  schema:\n"),
    "bad columns": lambda: numbered("  - {name: c#, typ: x}\n", HEAD + "  schema:\n"),
    "one column often": lambda: fill("  - {name: c, type: int64}\n", HEAD + "  schema:\n"),
    "bad types": lambda: numbered("  - {name: c#, type: int6#}\n", HEAD + "  schema:\n"),
    "deep type": lambda: (HEAD + "  schema: [{name: a, type: '" + "list<" * 190_000 + "'}]\n").encode(),
    "wide type": lambda: numbered("f#: int8, ", HEAD + "  schema: [{name: a, type: 'struct<", "z: int8>'}]\n"),
    "long type word": lambda: fill("i", HEAD + "  schema: [{name: a, type: '", "'}]\n"),
    "struct words": lambda: fill("struct ", HEAD + "  schema: [{name: a, fields: [{name: x, type: int8}], type: '", "'}]\n"),
    "references": lambda: fill("${var:x}", HEAD + "  description: '", "'\n"),
    "open references": lambda: fill("${", HEAD + "  description: '", "'\n"),
    "dollars": lambda: fill("$", HEAD + "  description: '", "'\n"),
    "default dashes": lambda: fill(":-", HEAD + "  description: '${var:x", "}'\n"),
    "reference values": lambda: numbered("    k#: ${var:n}\n", HEAD + "  properties:\n"),
    "reference flags": lambda: numbered("  - name: c#\n    type: int8\n    nullable: ${var:y}\n", HEAD + "  schema:\n"),
    "long unknown key": lambda: fill("a", HEAD + "  ", ": 1\n"),
    "many unknown keys": lambda: numbered("  k#: v\n", HEAD),
    "long identifier": lambda: fill("a, ", "apiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {catalog: c, id: [", "]}\n"),
    "many ignores": lambda: numbered("  - x#\n", HEAD + "  ignoreDifferences:\n"),
    "many indexes": lambda: numbered("  - {column: a, type: btree, name: i#}\n", HEAD + "  indexes:\n"),
    "namespaces": lambda: numbered("---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: c, id: [n#]}\n"),
    "same namespace": lambda: fill("---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: c, id: [n]}\n"),
    "rename chain": lambda: numbered(
        "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: c, id: [n#]}\nspec: {renamedFrom: [n#1]}\n"
    ),
    "indexes on the last column": lambda: two_lists("  - {name: c#, type: int8}\n", "  - {column: z, type: btree, name: i#}\n", "  indexes:\n", "  - {name: z, type: int8}\n"),
    "indexes on missing columns": lambda: two_lists("  - {name: c#, type: int8}\n", "  - {column: d#, type: btree}\n", "  indexes:\n"),
    "ignored columns": lambda: two_lists("  - {name: c#, type: int8}\n", "  - schema.z.comment\n", "  ignoreDifferences:\n", "  - {name: z, type: int8}\n"),
    "many catalogs, none of them meant": lambda: numbered(
        "---\napiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake#}\nspec: {type: dir, path: p#}\n"
        "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lage#, id: [n]}\n"
    ),
    "many ignored names": lambda: halves(NAMESPACE, "    - n#.**\n", IGNORING),
    "many loose patterns": lambda: halves(NAMESPACE, "    - '*x#'\n", IGNORING),
}  # fmt: skip


def measure(name: str) -> dict[str, object]:
    from reconciler.manifest.load import load

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hostile.yaml"
        file.write_bytes(CORPUS[name]())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.process_time()
        loaded = load([str(file)], variables={"n": "1", "y": "true"})
        seconds = time.process_time() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        codes = sorted({d.code for d in loaded.diagnostics})
        return {"seconds": round(seconds, 3), "megabytes": grown, "codes": codes, "n": len(loaded.diagnostics)}


def main(names: list[str]) -> None:
    """One JSON line per case. Each runs in its own fork, so that its peak memory is its own."""
    from reconciler.manifest.convert import _adapter
    from reconciler.manifest.schema_check import validator

    _adapter()
    validator()
    for name in names:
        child = os.fork()
        if child == 0:
            print(json.dumps({"name": name, **measure(name)}), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"name": name, "status": status}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
