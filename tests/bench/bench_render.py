"""(k) The markdown, SARIF and JUnit of a plan of N steps, against `json.dumps` of the same plan in the same run.

Nothing of the catalogs is in it: the plan is made of steps, a tenth of them blocked, a hundredth deletes, the rest new
tables with four columns. Arguments: the sizes, 1000 10000 by default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from timing import best, table

from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.diagnostic import Source
from reconciler.model.plan import CatalogSummary, Expect, Plan, Step, Summary
from reconciler.model.plan_json import change_to_json, plan_to_json
from reconciler.render.junit import plan_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.safe_markdown import length
from reconciler.render.sarif import plan_sarif
from reconciler.render.text import plan_text

FIELDS = tuple(
    Field(name, parse_type(text))
    for name, text in (
        ("id", "int64"), ("label", "string"), ("score", "float32"), ("embedding", "fixed_size_list<float32>[64]"),
    )
)  # fmt: skip


def step(number: int) -> Step:
    ident = (f"n{number // 1000}", f"t{number}")
    delete, held = number % 100 == 0, number % 10 == 1
    change: c.Change = (
        c.DeregisterTable(ident)
        if delete
        else c.CreateDataset(ident, FIELDS, {}, {"tier": "gold"}, "bench", ("config.tier",))
    )
    reason = "its manifest is gone and --prune was given; its data is kept" if delete else "no data yet"
    expect = Expect("present", "0" * 64) if delete else Expect("absent")
    source = None if delete else Source(f"manifests/n{number // 1000}.yaml", number % 1000 + 1)
    return Step(
        f"s{number}", "lake", change, "destructive" if delete else "safe", reason, "blocked" if held else "allowed",
        "adopt" if held else None, (), expect, Expect("absent"), (), None, change_to_json(change), source,
    )  # fmt: skip


def plan(count: int) -> Plan:
    steps = tuple(step(n) for n in range(count))
    catalogs = {"lake": CatalogSummary("dir", True, 10, count, {"type": "dir"})}
    return Plan("sha256:0", "0", "sha256:0", catalogs, steps, (), (), Summary(count * 89 // 100, 0, count // 100))


def rows(count: int) -> list[list[str]]:
    made = plan(count)
    assert length(plan_markdown(made)) <= 60_000
    renderers: dict[str, Callable[[Plan], str]] = {
        "markdown": plan_markdown,
        "text": plan_text,
        "sarif": lambda p: plan_sarif(p, {}),
        "junit": plan_junit,
    }
    peer = best(lambda: json.dumps(plan_to_json(made)))
    found = []
    for name, render in renderers.items():
        seconds = best(lambda render=render: render(made))  # type: ignore[misc]
        size = len(render(made))
        found.append([f"{count}", name, f"{seconds:.2f} s", f"{peer:.2f} s", f"{seconds / peer:.2f}x", f"{size}"])
    return found


if __name__ == "__main__":
    sizes = [int(a) for a in sys.argv[1:]] or [1000, 10_000]
    table(["steps", "format", "ours", "json.dumps", "ours/json", "characters"], [r for n in sizes for r in rows(n)])
