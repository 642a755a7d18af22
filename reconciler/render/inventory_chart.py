"""Small pictures of numbers over time, as SVG text. Colours are those of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 360, 150, 58, 10, 8, 20
_LINES = 3
Shown = Callable[[float], str]


@dataclass(frozen=True)
class Point:
    at: float
    value: float | None
    """None: only a part was read. That is a gap with a mark, not a value: what was not read is not gone."""


def line(points: Sequence[Point], shown: Shown, when: Shown) -> str:
    place = _Scale(points)
    stretches = [[*stretch] for known, stretch in groupby(points, lambda p: p.value is not None) if known]
    drawn = "".join(
        f'<polyline points="{" ".join(f"{place.x(at):.1f},{place.y(value):.1f}" for at, value in _known(stretch))}" '
        'fill="none" stroke="var(--main)" stroke-width="2" stroke-linejoin="round"/>'
        for stretch in stretches
    )
    dots = "".join(
        f'<circle cx="{place.x(at):.1f}" cy="{place.y(value):.1f}" r="3" fill="var(--main)">'
        f"{_title(when(at), shown(value))}</circle>"
        for at, value in _known(points)
    )
    return place.framed(_gaps(points, place, when) + drawn + dots, shown, when)


def bars(points: Sequence[Point], shown: Shown, when: Shown) -> str:
    place = _Scale(points)
    width = max(2.0, min(18.0, 0.6 * place.width / max(1, len(points))))
    low = place.y(0)
    drawn = "".join(
        f'<rect x="{place.x(at) - width / 2:.1f}" y="{place.y(value):.1f}" width="{width:.1f}" '
        f'height="{max(0.0, low - place.y(value)):.1f}" fill="var(--warn)">{_title(when(at), shown(value))}</rect>'
        for at, value in _known(points)
    )
    return place.framed(_gaps(points, place, when) + drawn, shown, when)


def _known(points: Sequence[Point]) -> list[tuple[float, float]]:
    return [(p.at, p.value) for p in points if p.value is not None]


def _gaps(points: Sequence[Point], place: _Scale, when: Shown) -> str:
    return "".join(
        f'<path d="M{place.x(p.at):.1f} {_TOP}V{_HIGH - _BOTTOM}" stroke="var(--soft)" stroke-width="1.5" '
        f'stroke-dasharray="2 3">{_title(when(p.at), "only partly read")}</path>'
        for p in points
        if p.value is None
    )


def _title(when: str, what: str) -> str:
    return f"<title>{escape(f'{when}: {what}')}</title>"


class _Scale:
    """From zero, so that heights can be compared. One point alone stands in the middle."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._first, self._last = min(p.at for p in points), max(p.at for p in points)
        self._step = _round_step(max((value for _, value in _known(points)), default=0.0) / _LINES)
        self._top = self._step * _LINES
        self.width = _WIDE - _LEFT - _RIGHT - 20

    def x(self, at: float) -> float:
        span = self._last - self._first
        return _LEFT + 10 + self.width * ((at - self._first) / span if span else 0.5)

    def y(self, value: float) -> float:
        return _HIGH - _BOTTOM - (_HIGH - _BOTTOM - _TOP) * value / self._top

    def framed(self, inside: str, shown: Shown, when: Shown) -> str:
        rules = "".join(self._rule(self._step * n, shown) for n in range(_LINES + 1))
        ends = f'<text x="{_LEFT}" y="{_HIGH - 4}">{when(self._first)[:10]}</text>'
        if self._last > self._first:
            ends += f'<text x="{_WIDE - _RIGHT}" y="{_HIGH - 4}" text-anchor="end">{when(self._last)[:10]}</text>'
        return f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img">{rules}{inside}{ends}</svg>'

    def _rule(self, value: float, shown: Shown) -> str:
        y = self.y(value)
        return (
            f'<line x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(shown(value))}</text>'
        )


def _round_step(least: float) -> float:
    """A step that reads well: 1, 2 or 5 times a power of ten, and at least one."""
    if least <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least)
