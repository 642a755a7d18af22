"""References to what is not there: one diagnostic for each variable or file, at the first place that asks for it, with
how many more there are. A variable that a thousand tables use must not hide the others that are missing too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from reconciler.core.text import plural
from reconciler.model.diagnostic import Diagnostic

CODES = frozenset({"M301", "M302", "M303"})


@dataclass(slots=True)
class Missing:
    """Keyed by the message, which names the variable or the file."""

    further: Counter[str] = field(default_factory=Counter)
    """Places that were passed over."""
    _seen: set[str] = field(default_factory=set)

    def next_file(self) -> None:
        """Each file tells on its own: what is told of another may not be shown, when there is too much of it."""
        self._seen.clear()

    def again(self, code: str, message: str) -> bool:
        """True when the same is told of this file already."""
        if code not in CODES:
            return False
        if message in self._seen:
            self.further[message] += 1
            return True
        self._seen.add(message)
        return False

    def counted(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """The diagnostics in their order, without those that repeat one about a missing variable or file."""
        found = list(diagnostics)
        places = Counter(d.message for d in found if d.code in CODES) + self.further
        out: list[Diagnostic] = []
        told: set[str] = set()
        for d in found:
            if d.code not in CODES:
                out.append(d)
            elif d.message not in told:
                told.add(d.message)
                more = places[d.message] - 1
                out.append(replace(d, message=f"{d.message} (and in {plural(more, 'more place')})") if more else d)
        return out
