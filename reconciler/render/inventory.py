"""An inventory as text and as JSON."""

from __future__ import annotations

from reconciler.core.text import plural
from reconciler.model.inventory import Inventory, ReadCatalog
from reconciler.model.plan_json import plan_to_json
from reconciler.render.as_json import dumped
from reconciler.render.safe_text import bounded, safe
from reconciler.render.text import DRIFT, plan_text

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def inventory_text(found: Inventory, color: bool = False) -> str:
    lines: list[str] = []
    for catalog in found.catalogs:
        lines.append(_line(catalog))
        lines += [f"  not complete: {bounded(safe(problem.text))}" for problem in catalog.problems]
    if found.run is None:
        lines.append(f"dry run: nothing is written to {safe(found.history)}")
    else:
        lines.append(f"run {found.run} is version {found.version} of {safe(found.history)}")
    if found.uncompared is not None:
        lines.append(f"not compared: {bounded(safe(found.uncompared.message))}")
    text = "".join(f"{line}\n" for line in lines)
    return text if found.diff is None else f"{text}\n{plan_text(found.diff, color, DRIFT)}"


def _line(catalog: ReadCatalog) -> str:
    figures = catalog.figures
    parts = [plural(catalog.tables, "table")]
    if figures.get("rows") is not None:
        parts += [plural(figures["rows"] or 0, "row"), size(figures["bytes"] or 0)]
        parts += [f"{plural(figures['fragments'] or 0, 'fragment')} ({figures['small_fragments']} small)"]
    if figures.get("unreadable"):
        parts.append(f"{figures['unreadable']} could not be read")
    return f"{safe(catalog.name)}: {', '.join(parts)}"


def inventory_json(found: Inventory) -> str:
    value = found.to_json()
    if found.diff is not None:
        value["diff"] = plan_to_json(found.diff)
    if found.uncompared is not None:
        value |= {"diff": None, "uncompared": found.uncompared.to_json()}
    return dumped(value)


def size(count: float) -> str:
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
