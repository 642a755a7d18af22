"""What a new object looks like to somebody who does not know us, and manifests made from what is live."""

from __future__ import annotations

import pyarrow as pa

from contract.lake import US, Lake, namespace, steps, table
from contract.outsider import describe, users
from contract.sample import FOREIGN
from reconciler.engine.observe import observe
from reconciler.manifest.emit import export
from reconciler.model.observed import Scope

TYPES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "fixed_size_binary[16]": pa.binary(16),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "timestamp[s]": pa.timestamp("s"),
    "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    "timestamp[ns, tz=+05:30]": pa.timestamp("ns", "+05:30"),
    "time32[ms]": pa.time32("ms"),
    "time64[ns]": pa.time64("ns"),
    "duration[ms]": pa.duration("ms"),
    "decimal128(38, 10)": pa.decimal128(38, 10),
    "decimal256(76, 10)": pa.decimal256(76, 10),
    "list<string>": pa.list_(pa.field("item", pa.string())),
    "list<int32 not null>": pa.list_(pa.field("item", pa.int32(), nullable=False)),
    "large_list<float64>": pa.large_list(pa.field("item", pa.float64())),
    "fixed_size_list<float32>[8]": pa.list_(pa.field("item", pa.float32()), 8),
    "struct<a: int32, b: string not null>": pa.struct([("a", pa.int32()), pa.field("b", pa.string(), nullable=False)]),
    "list<struct<x: float32>>": pa.list_(pa.field("item", pa.struct([("x", pa.float32())]))),
    "map<string, int64>": pa.map_(pa.string(), pa.int64()),
    "dictionary<int16, string>": pa.dictionary(pa.int16(), pa.string()),
}


def test_every_type_is_stored_as_declared(lake: Lake) -> None:
    columns = {f"c{i}": text for i, text in enumerate(TYPES)}
    lake.reach([*lake.home(), table(lake.t("t"), columns)])
    schema = lake.outsider.state().tables[lake.t("t")].schema
    assert schema is not None
    assert {text: schema.field(name).type for name, text in columns.items()} == TYPES
    assert all(f.nullable for f in schema)


def test_a_blob_is_a_blob(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), {"picture": "blob"})])
    (field,) = lake.outsider.state().tables[lake.t("t")].schema or ()
    assert "blob" in str(field.type) or (field.metadata or {}).get(b"lance-encoding:blob") == b"true"


def test_everything_that_is_declared_is_there(lake: Lake) -> None:
    docs = [
        *lake.home(description="a place", properties={"team": "one"}),
        table(
            lake.t("t"),
            [
                {"name": "id", "type": "int64", "nullable": False, "comment": "the key", "metadata": {"unit": "none"}},
                {"name": "text", "type": "string"},
                {"name": "tags", "type": "list<string>"},
                {"name": "v", "type": "fixed_size_list<float32>[8]"},
                {"name": "s", "type": "struct", "fields": [{"name": "a", "type": "int32", "comment": "inner"}]},
            ],
            config={"lance.auto_cleanup.interval": "20"},
            schemaMetadata={"label": "x y", "ünï": "ö"},
            indexes=[
                {"column": "id", "type": "btree"},
                {"column": "text", "type": "inverted", "name": "full-text"},
                {"column": "tags", "type": "label_list"},
                {"column": "v", "type": "ivf_flat", "params": {"num_partitions": 1, "metric": "cosine"}},
            ],
            **({"description": "a table"} if lake.has_properties else {}),
            **lake.with_properties(pii="false", quote='it\'s "x" ${y}'.replace("${", "$${")),
        ),
    ]
    lake.reach(docs)
    seen = lake.outsider.state()
    view = seen.tables[lake.t("t")]
    assert set(seen.tables) == {lake.t("t")}
    assert view.schema is not None
    id_ = pa.field("id", pa.int64(), nullable=False, metadata={"comment": "the key", "unit": "none"})
    inner = pa.struct([pa.field("a", pa.int32(), metadata={"comment": "inner"})])
    assert describe(view.schema.field("id")) == describe(id_)
    assert describe(view.schema.field("s")) == describe(pa.field("s", inner))
    assert view.schema.metadata == {b"label": b"x y", "ünï".encode(): "ö".encode()}
    assert view.config == {"lance.auto_cleanup.interval": "20"}
    assert view.indexes == {
        "id_idx": ("btree", "id"),
        "full-text": ("inverted", "text"),
        "tags_idx": ("label_list", "tags"),
        "v_idx": ("ivf_flat", "v"),
    }
    assert (view.owner, view.notes["reconciler.owner"]) == (US, US)
    if lake.has_properties:
        assert view.properties == {"description": "a table", "pii": "false", "quote": 'it\'s "x" ${y}'}
    if lake.at:
        assert users(seen.namespaces[lake.at]) == {"description": "a place", "team": "one"}
        assert seen.namespaces[lake.at]["reconciler.owner"] == US


def test_properties_that_have_no_place_are_unsupported(lake: Lake) -> None:
    plan = lake.plan([*lake.home(), table(lake.t("t"), {"id": "int64"}, properties={"a": "b"})])
    found = [(s.verdict, s.reason) for s in plan.steps if s.action == "update_table"]
    if lake.has_properties:
        assert found == []
        return
    ((verdict, reason),) = found
    assert verdict == "unsupported"
    assert "properties" in reason


def test_namespaces_nest_or_are_refused(lake: Lake) -> None:
    idents = [lake.ns("a"), lake.ns("a", "b"), lake.ns("a", "b", "c")]
    docs = [
        *(namespace(i, properties={"depth": str(len(i))}) for i in idents),
        table(lake.ns("a", "b", "c", "t"), {"x": "int8"}),
    ]
    if not lake.nests:
        assert set(lake.refusals(docs)) == {"M408"}
        return
    lake.reach(docs)
    seen = lake.outsider.state()
    assert {i: users(p) for i, p in seen.namespaces.items()} == {i: {"depth": str(len(i))} for i in idents}
    assert set(seen.tables) == {lake.ns("a", "b", "c", "t")}


def test_a_table_that_is_only_declared_gets_its_data(lake: Lake) -> None:
    """Declared by us without a schema, then with one; and left by somebody else in the same state, adopted."""
    lake.reach([*lake.home(), table(lake.t("ours"))])
    assert lake.outsider.state().tables[lake.t("ours")].schema is None
    lake.outsider.declare_table(lake.t("theirs"))
    docs = [*lake.home(), table(lake.t("ours"), {"id": "int64"}), table(lake.t("theirs"), {"id": "int64"})]
    plan = lake.plan(docs)
    assert [(s.change.ident, s.blocked_by) for s in plan.steps if s.verdict != "allowed"] == [
        (lake.t("theirs"), "adopt")
    ]
    lake.reach(docs, adopt=True)
    seen = lake.outsider.state().tables
    for name in ("ours", "theirs"):
        assert seen[lake.t(name)].schema == FOREIGN
        assert seen[lake.t(name)].owner == US


def test_live_state_as_manifests_plans_empty(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("theirs"), FOREIGN)
    lake.outsider.declare_table(lake.t("empty"))
    columns = [
        {"name": "id", "type": "int64", "nullable": False, "comment": "multi\nline: 'x'", "metadata": {"a": "no"}},
        {"name": "odd name", "type": 'struct<"a b": int32 not null, c: list<map<string, decimal128(10, 2)>>>'},
        {"name": "v", "type": "fixed_size_list<float32>[8]"},
    ]
    index = {"column": "v", "type": "ivf_pq", "params": {"num_partitions": 1, "num_sub_vectors": 2, "metric": "cosine"}}
    more = lake.with_properties(norway="no", number="1.0", reference="$${env:HOME}")
    lake.reach([table(lake.t("ours"), columns, config={"k": "v"}, protect=True, indexes=[index], **more)])
    spec = lake.desired([]).catalogs["lake"]
    catalog = lake.site.open()
    everything = Scope(detail=frozenset(observe(catalog, Scope()).tables))
    rules = lake.site.capabilities
    text = export(spec, observe(catalog, everything), rules.type_problem, rules.ident_problem).text
    file = lake.folder / "imported.yaml"
    file.write_text(text, "utf-8")
    loaded = lake.read(file)
    assert [d for d in loaded.diagnostics if d.severity == "error"] == []
    assert set(loaded.desired.tables["lake"]) == set(lake.outsider.state().tables)
    plan = lake.plan_desired(loaded.desired)
    assert (steps(plan), plan.orphans) == ([], ())
    assert lake.t("ours") not in {k.ident for k in plan.unowned}
