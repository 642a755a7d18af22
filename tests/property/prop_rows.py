"""An external writer as an actor of a state machine: whatever plain pylance can do to the rows of a table.

A mixin for a machine that has a `table`; it keeps what the rows are meant to be, by their content alone, so that it
knows nothing of the ways in which the program tells whose rows they are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from pipeline.filled_table import FilledTable

Content = list[tuple[int, str]]
KEEPING = frozenset({"compacts", "configures", "indexes"})
"""What proves by itself that the rows are the same."""


class ExternalWriter:
    table: FilledTable
    accounted: Content
    """The rows that the program answers for: what was there when it last ended well."""
    then: dict[int, tuple[Content, frozenset[str]]]
    """By version, at the end of each rule: what was accounted for, and what was done since."""
    done: frozenset[str]
    """What others did since the program last ended well."""
    next_id = 1000

    def content(self) -> Content:
        rows = self.table.dataset().to_table(columns=["id", "text"]).to_pylist()
        return sorted((row["id"], row["text"]) for row in rows)

    @property
    def changed(self) -> bool:
        """Somebody else's rows are among them, or rows of ours are not."""
        return self.content() != self.accounted

    def remember(self, what: str | None = None) -> None:
        if what is not None:
            self.done |= {what}
        self.then[int(self.table.dataset().version)] = self.accounted, self.done

    @rule()
    def appends(self) -> None:
        self.table.append(self._fresh())
        self.remember("appends")

    @rule()
    def overwrites(self) -> None:
        self.table.overwrite(self._fresh())
        self.remember("overwrites")

    @precondition(lambda self: self.table.dataset().count_rows())
    @rule(data=st.data())
    def deletes(self, data: Any) -> None:
        ids = sorted({number for number, _ in self.content()})
        some = data.draw(st.sampled_from(ids))
        self.table.dataset().delete(data.draw(st.sampled_from([f"id = {some}", f"id >= {some}", "true"])))
        self.remember("deletes")

    @precondition(lambda self: self.table.dataset().count_rows())
    @rule()
    def updates(self) -> None:
        first = self.content()[0][0]
        self.table.dataset().update({"text": f"'theirs {self._fresh()}'"}, where=f"id = {first}")
        self.remember("updates")

    @rule(data=st.data())
    def restores(self, data: Any) -> None:
        kept = {v["version"] for v in self.table.dataset().versions()}
        version = data.draw(st.sampled_from(sorted(kept & self.then.keys())))
        self.table.dataset(version).restore()
        self.accounted, self.done = self.then[version]
        self.remember("restores")

    @rule()
    def compacts(self) -> None:
        self.table.dataset().optimize.compact_files()
        self.remember("compacts")

    @rule()
    def configures(self) -> None:
        self.table.dataset().update_metadata({"theirs": str(self._fresh())})
        self.remember("configures")

    @rule()
    def indexes(self) -> None:
        self.table.dataset().create_scalar_index("id", "BTREE", name="theirs")
        self.table.dataset().optimize.compact_files()
        self.remember("indexes")

    @rule()
    def cleans_up(self) -> None:
        self.table.dataset().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
        self.remember("cleans_up")

    def _fresh(self) -> int:
        self.next_id += 100
        return self.next_id
