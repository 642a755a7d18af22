"""Documents of kind Defaults and Variables: what they are, and what is wrong with each of them alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.manifest.layers import Layer
from reconciler.manifest.problem import Problem, Problems
from reconciler.manifest.schema_check import accepts, explain, settle
from reconciler.manifest.substitute import mentions_reference, substitute
from reconciler.manifest.variables import Resolver


def checked(layer: Layer, resolver: Resolver | None) -> Mapping[str, Any] | None:
    """The document with its references replaced; None when something is wrong, which is told. Without a resolver there
    are no references."""
    document, value = layer.document, layer.document.value
    problems = Problems()
    if resolver is not None and mentions_reference(value):
        substituted = substitute(value, document.careful, resolver, problems)
        problems.references_done()
        settle(substituted, document.careful)
        value = substituted.value
    if not accepts(value):
        for problem in explain(value, document.careful()):
            problems.append(problem)
    for problem in problems:
        layer.sink.problem(document, problem)
    return value if isinstance(value, dict) and problems.none else None


class VariableValues:
    """The variables of all Variables documents. None is given twice: which one counts would depend on the order."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._places: dict[str, str] = {}

    def take(self, layer: Layer) -> None:
        value = checked(layer, None)
        if value is None:
            return
        for name, text in value["spec"]["values"].items():
            path = ("spec", "values", name)
            first = self._places.setdefault(name, layer.place)
            if name in self.values:
                message = f"the variable {name} is given at {first} already"
                hint = "keep one of them; another value for one environment is a change in its overlay"
                layer.sink.problem(layer.document, Problem("M520", path, message, hint, at_key=True))
            elif "${" in text:
                message = (
                    f"the variable {name} holds a reference, and what a reference stands for is not looked at again"
                )
                hint = "write the value out; an environment's own value goes into its overlay"
                layer.sink.problem(layer.document, Problem("M304", path, message, hint))
            self.values.setdefault(name, text)
