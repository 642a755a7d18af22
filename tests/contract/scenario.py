"""One catalog before and after a day of changes of every kind that the backend can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contract.lake import Doc, Lake, namespace, table
from contract.sample import FOREIGN
from reconciler.model.plan import Plan

BASE = {
    "id": "int64 not null",
    "name": "string",
    "amount": "int32",
    "note": "string",
    "place": "struct<x: int32, y: int32>",
}
ROWS = [
    {"id": 1, "name": "a", "amount": 7, "note": "n", "place": {"x": 1, "y": 2}},
    {"id": 2, "name": None, "amount": None, "note": None, "place": None},
]


def before(lake: Lake) -> list[Doc]:
    docs = lake.home(properties={"team": "one"}, description="where it all is")
    docs += [
        table(
            lake.t("orders"),
            BASE,
            config={"k": "1", "gone": "x"},
            schemaMetadata={"s": "1"},
            indexes=[
                {"column": "id", "type": "btree"},
                {"column": "name", "type": "bitmap"},
                {"column": "place.y", "type": "zonemap"},
            ],
            **lake.with_properties(colour="red", size="l"),
        ),
        table(lake.t("leaving"), {"id": "int64"}),
    ]
    if lake.has_namespaces:
        docs += [
            namespace(lake.ns("old"), properties={"p": "1"}),
            *([namespace(lake.ns("old", "deep"))] if lake.nests else []),
            namespace(lake.ns("moving")),
            table(lake.ns("moving", "inside"), {"id": "int64"}),
            table(lake.ns("moving", "olden"), {"id": "int64"}),
        ]
    return docs


@dataclass(frozen=True)
class Day:
    """A copy of the prepared catalog, and what an undisturbed run makes of it."""

    lake: Lake
    final: Callable[[], object]

    @property
    def docs(self) -> list[Doc]:
        return after(self.lake)

    def plan(self, docs: list[Doc] | None = None) -> Plan:
        return self.lake.plan(docs or self.docs, adopt=True)

    def ended_well(self) -> None:
        found, meant = self.lake.comparable(), self.final()
        assert found == meant, f"{found}\n\nis not\n\n{meant}"


def prepare(lake: Lake) -> None:
    """The state before, with rows, and with a table of somebody else that is to be adopted."""
    lake.management["thresholds"] = {"deletePercent": 100}  # the share grows while an interrupted run goes on
    lake.reach(before(lake))
    lake.outsider.append(lake.t("orders"), ROWS)
    lake.outsider.create_table(lake.t("theirs"), FOREIGN)


def after(lake: Lake) -> list[Doc]:
    """Needs `--adopt`. What this backend cannot change stays as it was, so that every step can be done."""
    as_it_was = {"properties": {"team": "one"}, "description": "where it all is"}
    docs = lake.home(**({"properties": {"team": "two", "new": "x"}} if lake.changes_namespaces else as_it_was))
    docs += [
        table(
            lake.t("orders"),
            [
                {"name": "id", "type": "int64", "nullable": False, "comment": "the key"},
                {"name": "title", "type": "string", "renamedFrom": "name"},
                {"name": "amount", "type": "int64"},
                {
                    "name": "place",
                    "type": "struct",
                    "fields": [{"name": "lon", "type": "int32", "renamedFrom": "x"}, {"name": "y", "type": "int32"}],
                },
                {"name": "extra", "type": "float64"},
            ],
            config={"k": "2"},
            schemaMetadata={"s": "2"},
            indexes=[{"column": "id", "type": "zonemap"}, {"column": "title", "type": "bitmap"}],
            allow=["drop_column", "drop_index"],
            **lake.with_properties(**({"colour": "blue"} if lake.changes_tables else {"colour": "red", "size": "l"})),
        ),
        table(lake.t("leaving"), state="absent"),
        table(lake.t("theirs"), {"id": "int64", "more": "string"}),
        table(lake.t("fresh"), {"id": "int64"}, indexes=[{"column": "id", "type": "btree"}]),
    ]
    if lake.has_namespaces:
        docs.append(namespace(lake.ns("old"), state="absent"))
        docs += [namespace(lake.ns("old", "deep"), state="absent")] if lake.nests else []
        docs += _moves(lake)
    return docs


def _moves(lake: Lake) -> list[Doc]:
    new = "moved" if lake.renames_namespaces else "moving"
    renamed = {"renamedFrom": [*lake.ns("moving")]} if lake.renames_namespaces else {}
    newer = table(lake.ns(new, "newer"), {"id": "int64"}, renamedFrom=[*lake.ns(new, "olden")])
    return [
        namespace(lake.ns(new), **renamed),
        table(lake.ns(new, "inside"), {"id": "int64", "more": "string"}),
        newer if lake.renames_tables else table(lake.ns(new, "olden"), {"id": "int64"}),
    ]
