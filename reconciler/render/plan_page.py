"""A plan as one page: what it tells, what matters first, and a picture of its order."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from reconciler.core.text import size_of
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.plan import Plan
from reconciler.render.graph_svg import drawing
from reconciler.render.page_entries import entries
from reconciler.render.page_frame import count, page, text
from reconciler.render.plan_graph import object_graph, plan_graph
from reconciler.render.safe_text import printable
from reconciler.render.text import DRIFT, NO_CHANGES, plan_summary

PICTURE = 150
"""Boxes in the picture of the whole; a bigger plan has only those around a step."""
_CATALOGS = 12


def plan_page(plan: Plan, title: str = NO_CHANGES, warnings: Sequence[Diagnostic] = ()) -> str:
    heading = "Drift" if title == DRIFT else "Plan"
    return page(heading, plan.plan_id, _header(plan, title), _picture(plan), entries(plan, warnings))


def _header(plan: Plan, title: str) -> str:
    summary, *refused = plan_summary(plan, title).splitlines()
    told = [f"<p>{text(summary)}</p>", *(f'<p class="alert">{text(line)}</p>' for line in refused)]
    refusing = sum(1 for finding in plan.findings if finding.refuses)
    if refusing:
        told.append(f'<p class="alert">The policy refuses this plan: {count(refusing, "finding")}.</p>')
    beside = ((len(plan.orphans), "orphaned"), (len(plan.unowned), "unowned"), (len(plan.left_out), "left out"))
    if any(number for number, _ in beside):
        told.append(f"<p>Beside the steps: {', '.join(f'{number} {what}' for number, what in beside if number)}.</p>")
    about = [f"plan <code>{text(plan.plan_id)}</code>", f"reconciler {text(plan.tool_version)}"]
    for name, catalog in sorted(plan.catalogs.items(), key=lambda item: (item[1].complete, item[0]))[:_CATALOGS]:
        size = text(size_of(catalog))
        state = "" if catalog.complete else ' <span class="alert">not read completely</span>'
        about.append(f"catalog <strong>{text(name)}</strong> ({text(catalog.type)}: {size}){state}")
    if len(plan.catalogs) > _CATALOGS:
        about.append(f"{len(plan.catalogs) - _CATALOGS} more catalogs")
    lines = "".join(f"<li>{line}</li>" for line in about)
    return f'{"".join(told)}\n<ul class="about">{lines}</ul>'


def _picture(plan: Plan) -> str:
    """Of the steps, or of the objects when the steps are too many, or none."""
    if not any(step.needs for step in plan.steps):
        return ""
    if len({(step.key, step.deletes) for step in plan.steps}) > PICTURE:
        return ""
    graph = plan_graph(plan) if len(plan.steps) <= PICTURE else object_graph(plan)
    shown = drawing(graph, lambda node: "#" + urlencode({"at": printable(node.id)}))
    return (
        f'<details id="picture"><summary>{text(graph.title)}, in their order</summary>'
        f'<div class="scroll" tabindex="0">{shown}</div></details>\n'
    )
