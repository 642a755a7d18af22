"""A page of limited size, filled in the order of importance and read in the order of its sections.

Text is put whole or not at all, and a section's end is paid for together with its beginning: what was left out never
leaves a table, a fold or a fence open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.render.safe_markdown import length


@dataclass
class Section:
    """`opening` and `closing` are shown once something is inside; so is the section it is `under`."""

    opening: str = ""
    closing: str = ""
    under: Section | None = None
    parts: list[str] = field(default_factory=list)
    begun: bool = False

    def _unpaid(self) -> int:
        above = self.under._unpaid() if self.under is not None else 0
        return above if self.begun else above + length(self.opening) + length(self.closing)

    def _begin(self) -> None:
        self.begun = True
        if self.under is not None:
            self.under._begin()

    def price(self, text: str) -> int:
        return self._unpaid() + length(text)

    def put(self, text: str) -> None:
        self._begin()
        self.parts.append(text)

    def text(self) -> str:
        return f"{self.opening}{''.join(self.parts)}{self.closing}" if self.begun else ""


class Page:
    def __init__(self, limit: int) -> None:
        self.left = limit
        self._sections: list[Section] = []

    def section(self, opening: str = "", closing: str = "", under: Section | None = None) -> Section:
        """They follow each other as they are made."""
        made = Section(opening, closing, under)
        self._sections.append(made)
        return made

    def put(self, section: Section, text: str) -> bool:
        """False, and nothing happens, when there is no room for it."""
        price = section.price(text)
        if price > self.left:
            return False
        self.left -= price
        section.put(text)
        return True

    def text(self) -> str:
        return "".join(section.text() for section in self._sections)
