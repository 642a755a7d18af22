"""The history of a fleet as one page: pictures in the page itself, no script, nothing from the network.

Every name comes from a catalog that others write to, so every text is escaped, and the page's own policy lets nothing
run or load should one slip through.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from reconciler.render.assets import asset
from reconciler.render.inventory import size
from reconciler.render.inventory_chart import Point, Shown, bars, line
from reconciler.render.safe_text import bounded, printable

Row = Mapping[str, Any]
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1200px; padding: 1.5rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .75rem; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: 0 0 .5rem; } p { margin: .25rem 0; color: var(--dim); }
.warn { color: var(--warn); overflow-wrap: anywhere; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; min-width: 0;
  padding: .75rem 1rem; }
.big { font-size: 1.4rem; font-variant-numeric: tabular-nums; margin: 0; color: var(--ink); }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--dim); font-size: 11px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th { color: var(--dim); font-weight: 600; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
"""


def inventory_page(figures: Mapping[str, Sequence[Row]]) -> str:
    runs = figures["runs"]
    names = sorted({row["catalog"] for row in runs})
    count = len({row["run"] for row in runs})
    parts = [
        f"<h1>Fleet inventory</h1><p>{count} run{'' if count == 1 else 's'}, {_span(runs)}</p>",
        *(_catalog(name, [row for row in runs if row["catalog"] == name]) for name in names),
        _list("Biggest tables", figures["biggest"], _BIGGEST),
        _list("Fastest growing", figures["growing"], _GROWING),
        _list("Most small fragments", figures["small"], _SMALL),
        _list("Indexes that do not cover all rows", figures["uncovered"], _UNCOVERED),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Fleet inventory</title>\n'
        f"<style>{asset('colours.css')}{_STYLE}</style>\n</head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def text(value: object) -> str:
    """Escaped for the page; what would steer a terminal or turn the writing direction is shown as a code."""
    return escape(bounded(printable(str(value))))


def _span(runs: Sequence[Row]) -> str:
    times = [row["at"] for row in runs]
    return f"{when(min(times))} to {when(max(times))} UTC" if times else "nothing recorded yet"


def when(at: float) -> str:
    return f"{datetime.datetime.fromtimestamp(at, datetime.UTC):%Y-%m-%d %H:%M}"


def _catalog(name: str, runs: Sequence[Row]) -> str:
    """Figures are those of the last run that read all of it."""
    last, whole = runs[-1], [row for row in runs if row["error"] is None]
    told = []
    if last["error"] is not None:
        shown = f"the figures are those of {when(whole[-1]['at'])} UTC" if whole else "no run here read all of it"
        told.append(f'<p class="warn">Only partly read in the last run: {text(last["error"])}; {shown}</p>')
    if last["unreadable"]:
        told.append(f'<p class="warn">{_number(last["unreadable"])} could not be read in the last run</p>')
    cards = [
        _card("Tables", runs, "tables", line, _number),
        _card("Rows", runs, "rows", line, _number),
        _card("Bytes", runs, "bytes", line, size),
        _drift(runs),
        _card("Changed between complete runs", runs, "changed", bars, _number),
        _card("Small fragments", runs, "small_fragments", line, _number),
    ]
    gaps = "" if len(whole) == len(runs) else "<p>Dashed lines: runs in which the catalog was only partly read.</p>"
    return f'<h2>{text(name)}</h2>{"".join(told)}<div class="grid">{"".join(cards)}</div>{gaps}'


def _drift(runs: Sequence[Row]) -> str:
    compared = [row for row in runs if row["drift"] is not None]
    if not compared:
        return _framed("Not as declared", "unknown", "<p>No run was made with --diff.</p>")
    return _card("Not as declared", compared, "drift", bars, _number)


def _card(title: str, runs: Sequence[Row], column: str, picture: Callable[..., str], shown: Shown) -> str:
    """What was read in part is no value. Where there is nothing else, it is what there is at least."""
    points = [Point(row["at"], None if row["error"] is not None else float(row[column])) for row in runs]
    whole = [p.value for p in points if p.value is not None]
    value = shown(whole[-1]) if whole else f"at least {shown(runs[-1][column])}"
    return _framed(title, value, picture(points, shown, when))


def _framed(title: str, value: str, picture: str) -> str:
    return f'<div class="card"><h3>{title}</h3><p class="big">{value}</p>{picture}</div>'


def _number(value: float) -> str:
    """Whole and with spaces while that is short."""
    if abs(value) < 1e7:
        return f"{value:,.0f}".replace(",", " ")
    power = next((p for p in (1e9, 1e12, 1e15) if abs(value) < p), 1e18)
    unit = {1e9: "M", 1e12: "G", 1e15: "T"}.get(power, "P")
    return f"{value / (power / 1000):.3g} {unit}"


Column = tuple[str, Callable[[Row], str]]
_NAME: Column = ("table", lambda row: text(f"{row['catalog']}:{row['id']}"))
_BIGGEST: tuple[Column, ...] = (
    _NAME,
    ("bytes", lambda row: size(row["bytes"])),
    ("rows", lambda row: _number(row["rows"])),
    ("fragments", lambda row: _number(row["fragments"])),
)
_GROWING: tuple[Column, ...] = (
    _NAME,
    ("bytes a day", lambda row: size(row["bytes"] / row["days"])),
    ("rows a day", lambda row: _number(row["rows"] / row["days"])),
    ("bytes now", lambda row: size(row["now"])),
    ("seen for", lambda row: _days(row["days"])),
)
_SMALL: tuple[Column, ...] = (
    _NAME,
    ("small", lambda row: _number(row["small_fragments"])),
    ("fragments", lambda row: _number(row["fragments"])),
    ("rows", lambda row: _number(row["rows"])),
)
_UNCOVERED: tuple[Column, ...] = (
    _NAME,
    ("covered by the index that lacks most", lambda row: _share(row["rows"] - row["unindexed_rows"], row["rows"])),
    ("rows without it", lambda row: _number(row["unindexed_rows"])),
    ("rows", lambda row: _number(row["rows"])),
)


def _share(part: float, whole: float) -> str:
    """Never 100 % of what is not complete."""
    return f"{min(part * 100 / whole, 99.9):.3g} %" if whole and part < whole else "100 %"


def _days(days: float) -> str:
    if days >= 2:
        return f"{days:.0f} days"
    return f"{days * 24:.0f} h" if days * 24 >= 2 else f"{max(1, round(days * 1440))} min"


def _list(title: str, rows: Sequence[Row], columns: Sequence[Column]) -> str:
    if not rows:
        return f"<h2>{title}</h2><p>None.</p>"
    head = "".join(f"<th>{name}</th>" for name, _ in columns)
    body = "".join("<tr>" + "".join(f"<td>{shown(row)}</td>" for _, shown in columns) + "</tr>" for row in rows)
    return f'<h2>{title}</h2><div class="card scroll"><table><tr>{head}</tr>{body}</table></div>'
