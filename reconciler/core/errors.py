"""Why there is no plan."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.diagnostic import Diagnostic, tidy


class PlanError(Exception):
    """The manifests and the live catalogs do not fit together; the diagnostics say where and how to fix it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tidy(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))


class InternalError(Exception):
    """A plan that does not reach the desired state when simulated: our bug, never shown as a plan."""
