"""Every kind of index that we make is used by plain pylance, and answers right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from contract.lake import Doc, Lake, table
from reconciler.model.state import VECTOR_INDEXES

NUMBERS, TEXT, TAGS, STRUCT = "int32", "string", "list<string>", "struct<a: int32>"
VECTOR = "fixed_size_list<float32>[8]"


@dataclass(frozen=True)
class Asked:
    """One index on a column of its own, and a question that only row 42 and its later twin fit."""

    type: str
    kind: str
    question: str = ""
    """A filter over the column `{c}`; without one, the words or the vectors next to those of row 42."""
    below: str = ""
    """The path of the indexed field inside the column."""

    @property
    def column(self) -> str:
        return f"c_{self.kind}{'_nested' if self.below else ''}"

    @property
    def index(self) -> Doc:
        doc: Doc = {"column": self.column + self.below, "type": self.kind}
        if self.kind in VECTOR_INDEXES:
            parts = {"num_sub_vectors": 4} if "pq" in self.kind else {}
            doc["params"] = {"num_partitions": 2, "metric": "l2", **parts}
        return doc

    def value(self, n: int) -> Any:
        values = {NUMBERS: n, TEXT: f"word{n}", TAGS: [f"tag{n}", "common"], STRUCT: {"a": n}, VECTOR: [float(n)] * 8}
        return values[self.type]

    def found(self, dataset: Any, count: int) -> set[int]:
        """The ids that the index gives; `count` is how many neighbours to ask for."""
        if self.question:
            how, used = {"filter": self.question.format(c=self.column)}, "ScalarIndexQuery"
        elif self.type == TEXT:
            words = {"columns": [self.column], "query": "word42"}
            how, used = {"full_text_query": words}, " MatchQuery:"  # a FlatMatchQuery does without
        else:
            nearest = {"column": self.column, "q": self.value(42), "k": count, "nprobes": 2, "refine_factor": 50}
            how, used = {"nearest": nearest}, "ANN"
        scanner = dataset.scanner(columns=["id"], **how)
        plan = scanner.explain_plan()
        assert used in plan, f"{self.kind} is not asked:\n{plan}"
        return {row["id"] for row in scanner.to_table().to_pylist()}


EVERY = [
    *(Asked(NUMBERS, kind, "{c} = 42") for kind in ("btree", "bitmap", "zonemap", "bloomfilter")),
    Asked(STRUCT, "btree", "{c}.a = 42", below=".a"),
    Asked(TAGS, "label_list", "array_has_any({c}, ['tag42'])"),
    Asked(TEXT, "ngram", "contains({c}, 'word42')"),
    Asked(TEXT, "inverted"),
    *(Asked(VECTOR, kind) for kind in sorted(VECTOR_INDEXES)),
]


def row(id_: int, n: int) -> dict[str, Any]:
    return {"id": id_, **{asked.column: asked.value(n) for asked in EVERY}}


@pytest.mark.slow
def test_every_kind_answers_queries_of_plain_pylance(stored: Lake) -> None:
    """On the rows it was made over, and with rows that came later: an index that hides those is worse than none."""
    columns = {"id": "int64"} | {asked.column: asked.type for asked in EVERY}
    stored.reach([*stored.home(), table(stored.t("t"), columns)])
    stored.outsider.append(stored.t("t"), [row(n, n) for n in range(300)])
    stored.reach([*stored.home(), table(stored.t("t"), columns, indexes=[asked.index for asked in EVERY])])
    dataset = stored.outsider.open(stored.t("t"))  # type: ignore[attr-defined]
    assert {asked.column: asked.found(dataset, 1) for asked in EVERY} == {asked.column: {42} for asked in EVERY}
    stored.outsider.append(stored.t("t"), [row(1042, 42)])
    dataset = stored.outsider.open(stored.t("t"))  # type: ignore[attr-defined]
    both = {asked.column: {42, 1042} for asked in EVERY}
    assert {asked.column: asked.found(dataset, 2) for asked in EVERY} == both
