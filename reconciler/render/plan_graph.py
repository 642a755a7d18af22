"""The steps of a plan as a graph: an arrow leads from a step to those that need it. That deletes wait for everything
else is a rule of every run and no arrow here: it would be one from every step to every delete."""

from __future__ import annotations

from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import Plan, Step
from reconciler.render.graph import SERIOUS, Edge, Graph, Node, Style
from reconciler.render.text import symbol_of

_STYLES: dict[str, Style] = {"+": "create", "~": "update", "-": "delete", "!": "blocked", "?": "unsupported"}


def plan_graph(plan: Plan) -> Graph:
    known = {step.id for step in plan.steps}
    edges = (Edge(need, step.id) for step in plan.steps for need in step.needs if need in known)
    return Graph("Steps of the plan", tuple(_node(step) for step in plan.steps), tuple(edges))


def object_graph(plan: Plan) -> Graph:
    """One box for all steps of an object, by the most serious of them."""
    groups: dict[tuple[ObjectKey, bool], list[Step]] = {}
    for step in plan.steps:
        groups.setdefault((step.key, step.deletes), []).append(step)
    ids = {step.id: steps[0].id for steps in groups.values() for step in steps}
    edges = {
        Edge(ids[need], ids[step.id]): None
        for step in plan.steps
        for need in step.needs
        if ids.get(need, ids[step.id]) != ids[step.id]
    }
    return Graph("Objects of the plan", tuple(_group(steps) for steps in groups.values()), tuple(edges))


def style_of(step: Step) -> Style:
    return _STYLES[symbol_of(step)]


def _node(step: Step) -> Node:
    return Node(step.id, (_name(step), f"{step.id} {step.action}", *_held(step)), style_of(step), _rank(step))


def _group(steps: list[Step]) -> Node:
    if len(steps) == 1:
        return _node(steps[0])
    styles = {style_of(step) for step in steps}
    order: tuple[Style, ...] = ("blocked", "unsupported", "delete", "create", "update")
    style = next(style for style in order if style in styles)
    return Node(steps[0].id, (_name(steps[0]), f"{len(steps)} steps from {steps[0].id}"), style, min(map(_rank, steps)))


def _rank(step: Step) -> int:
    """What deletes is last in a plan, and the first that a reader has to see; then what is held back."""
    if step.verdict != "allowed":
        return SERIOUS
    return SERIOUS - 1 if step.risk == "destructive" or step.deletes else SERIOUS + 1


def _name(step: Step) -> str:
    return f"{step.catalog}:{dotted(step.change.ident)}"


def _held(step: Step) -> tuple[str, ...]:
    return () if step.verdict == "allowed" else (f"{step.verdict}: {step.blocked_by or step.reason}",)
