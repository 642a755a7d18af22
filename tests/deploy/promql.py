"""As much of PromQL as our alerts use, evaluated: promql-parser reads it, and there is no Prometheus here to ask.

What is not known here raises, so that no alert is tried by rules that are not those of Prometheus.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from promql_parser import (
    AggModifierType,
    AggregateExpr,
    BinaryExpr,
    Call,
    MatchOp,
    MatrixSelector,
    NumberLiteral,
    ParenExpr,
    VectorSelector,
    parse,
)

Labels = frozenset[tuple[str, str]]
Vector = Mapping[Labels, float]
NAME = "__name__"
ARITHMETIC: dict[str, Callable[[float, float], float]] = {"-": operator.sub, "*": operator.mul}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {">": operator.gt, "==": operator.eq}
AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min, "group": lambda _: 1.0}
MATCHES: dict[str, Callable[[str, str], bool]] = {
    "MatchOp.Equal": operator.eq,
    "MatchOp.NotEqual": operator.ne,
    "MatchOp.Re": lambda value, pattern: re.fullmatch(pattern, value) is not None,
}


@dataclass(frozen=True)
class Scraped:
    """What Prometheus knows: the series of now, and those that were there earlier, within any range."""

    now: Vector
    time: float = 0
    earlier: Vector = field(default_factory=dict)


def series(name: str, value: float, **labels: str) -> Vector:
    """A label without a value is one that is not there."""
    return {frozenset({NAME: name, **{k: v for k, v in labels.items() if v}}.items()): value}


def evaluated(expression: str, scraped: Scraped) -> Vector:
    result = _value(parse(expression), scraped)
    assert not isinstance(result, float), "an alert has to have labels"
    return result


def _value(node: Any, scraped: Scraped) -> float | Vector:
    match node:
        case NumberLiteral():
            return float(node.val)
        case ParenExpr():
            return _value(node.expr, scraped)
        case VectorSelector():
            return _selected(node, scraped.now)
        case Call():
            return _called(node, scraped)
        case AggregateExpr():
            return _aggregated(node, scraped)
        case BinaryExpr():
            return _combined(str(node.op), node, _value(node.lhs, scraped), _value(node.rhs, scraped))
    raise NotImplementedError(type(node))


def _selected(selector: Any, known: Vector) -> Vector:
    if selector.offset is not None or selector.at is not None:
        raise NotImplementedError("offset and @")
    return {labels: value for labels, value in known.items() if _matches(selector, dict(labels))}


def _matches(selector: Any, labels: Mapping[str, str]) -> bool:
    wanted = ((str(m.op), labels.get(m.name, ""), m.value) for m in selector.matchers.matchers)
    return labels[NAME] == selector.name and all(MATCHES[op](value, given) for op, value, given in wanted)


def _called(call: Any, scraped: Scraped) -> float | Vector:
    (*arguments,) = call.args
    match call.func.name, arguments:
        case "time", []:
            return scraped.time
        case "absent", [VectorSelector() as one]:
            same = [(m.name, m.value) for m in one.matchers.matchers if m.op == MatchOp.Equal]
            return {} if _selected(one, scraped.now) else {frozenset(same): 1.0}
        case "last_over_time", [MatrixSelector() as one]:
            return _selected(one.vector_selector, {**scraped.earlier, **scraped.now})
    raise NotImplementedError(call.func.name)


def _aggregated(node: Any, scraped: Scraped) -> Vector:
    of = _value(node.expr, scraped)
    assert not isinstance(of, float)
    if node.modifier is None or node.modifier.type != AggModifierType.Without:
        raise NotImplementedError("by")
    named = set(node.modifier.labels)
    groups: dict[Labels, list[float]] = {}
    for labels, value in of.items():
        kept = frozenset(label for label in _unnamed(labels) if label[0] not in named)
        groups.setdefault(kept, []).append(value)
    return {labels: AGGREGATES[str(node.op)](values) for labels, values in groups.items()}


def _combined(op: str, node: Any, left: float | Vector, right: float | Vector) -> float | Vector:
    if node.modifier is not None and (node.modifier.matching is not None or node.modifier.return_bool):
        raise NotImplementedError("on, ignoring and bool")
    match left, right:
        case float(), float():
            return ARITHMETIC[op](left, right)
        case Mapping(), float() if op in COMPARISONS:
            return {labels: value for labels, value in left.items() if COMPARISONS[op](value, right)}
        case float(), Mapping():
            return {_unnamed(labels): ARITHMETIC[op](left, value) for labels, value in right.items()}
        case Mapping(), Mapping() if op in ("or", "unless"):
            return _either(left, right) if op == "or" else _less(left, right)
    raise NotImplementedError(op)


def _either(left: Vector, right: Vector) -> Vector:
    return {**left, **_less(right, left)}


def _less(left: Vector, right: Vector) -> Vector:
    taken = {_unnamed(labels) for labels in right}
    return {labels: value for labels, value in left.items() if _unnamed(labels) not in taken}


def _unnamed(labels: Iterable[tuple[str, str]]) -> Labels:
    return frozenset(label for label in labels if label[0] != NAME)
