"""A lake with every kind of difference from its manifests."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
from cli.cli_runs import catalog, namespace, reconciler, table, write

TWO = "[{name: id, type: int64}, {name: text, type: string}]"
BEFORE = ("same", "wider", "narrower", "orphan", "theirs", "broken", "to_go", "old", "recommented", "deregistered")


def applied(folder: Path, name: str, *extra: str) -> None:
    done = reconciler(folder, "apply", name, "--yes", *extra)
    assert done.code == 0, done.err


def differing(folder: Path) -> None:
    """Writes m.yaml; what is live was made by an apply of other manifests, and by others."""
    head, ns = catalog(), namespace("a", spec="{properties: {team: x}}")
    tables = [table("a", name, schema=TWO) for name in BEFORE if name not in ("same", "orphan")]
    same = table("a", "same", schema=TWO, spec="indexes: [{column: id, type: btree}]")
    root = table("at_root", schema=TWO, spec="properties: {}")
    empty = [namespace("gone"), namespace("full"), table("full", "inside"), namespace("moves"), table("moves", "along")]
    write(folder, head, ns, *tables, same, table("a", "orphan"), root, *empty, name="before.yaml")
    applied(folder, "before.yaml")
    write(folder, catalog("others"), namespace("b"), table("b", "foreign", schema=TWO), table("b", "like", schema=TWO),
          name="others.yaml")  # fmt: skip
    applied(folder, "others.yaml")
    write(folder, *[d for d in (head, ns, same) if d], name="less.yaml")
    for name in ("stranger", "unowned", "unowned_too"):
        lance.write_dataset(pa.table({"id": [1], "text": ["x"]}), folder / "lake" / f"{name}.lance")
    write(folder, head, ns, table("a", "deregistered", schema=TWO, spec="state: absent"), name="drop.yaml")
    applied(folder, "drop.yaml")
    shutil.rmtree(broken_place(folder) / "_versions")
    wide = "[{name: id, type: int64}, {name: text, type: string}, {name: more, type: float32}]"
    write(
        folder,
        head,
        namespace("a", spec="{properties: {team: y}}"),
        same,
        root,
        table("a", "wider", schema=wide),
        table("a", "narrower", schema="[{name: id, type: int64}]"),
        table("a", "theirs", schema=TWO, spec='properties: {tier: "gold"}'),
        table("a", "broken", schema=TWO),
        table("a", "to_go", schema=TWO, spec="state: absent"),
        table("a", "new", schema=TWO, spec="renamedFrom: [a, old]"),
        table("a", "recommented", schema=TWO, spec="description: other"),
        table("a", "deregistered", schema=TWO),
        table("a", "missing", schema=TWO),
        table("b", "foreign", schema=wide),
        table("b", "like", schema=TWO),
        table("unowned", schema=TWO),
        table("unowned_too", schema="[{name: id, type: int64}]"),
        namespace("gone", spec="{state: absent}"),
        namespace("full", spec="{state: absent}"),
        namespace("moved", spec="{renamedFrom: [moves]}"),
        table("moved", "along"),
        namespace("fresh"),
        table("fresh", "first", schema=TWO),
    )


def broken_place(folder: Path) -> Path:
    (found,) = [p for p in (folder / "lake").iterdir() if p.name.endswith("a$broken")]
    return found
