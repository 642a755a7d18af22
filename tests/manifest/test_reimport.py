"""Import into files that are there: they say what is live, and keep what people wrote in them."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reconciler.app_import import ImportRequest, import_catalogs
from reconciler.catalog.memory import MemoryCatalog
from reconciler.manifest.load import load
from reconciler.model.arrow import Field, parse_type
from reconciler.model.desired import Desired
from reconciler.model.file_change import FileChange
from reconciler.model.observed import Present, Scope, Snapshot
from reconciler.model.state import DatasetState, Index, Marks, NamespaceState, TableState
from reconciler.session import Session

from .test_emit import NAMESPACE, TABLE

HEAD = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec: {type: dir, path: ./lake}\n"


FEW = st.sampled_from(["a", "b", "é"])
"""So that both snapshots have the same objects, in different states."""
SNAPSHOT = st.builds(
    lambda namespaces, tables: Snapshot(
        {(n,): Present(s) for n, s in namespaces.items()}, {(n, "t"): Present(s) for n, s in tables.items()}
    ),
    st.dictionaries(FEW, NAMESPACE, max_size=3),
    st.dictionaries(FEW, TABLE, max_size=3),
)


class Live(Session):
    """A session whose catalog is a snapshot."""

    snapshot: Snapshot

    def connect(self, spec: Any) -> Any:
        self.specs[spec.name] = spec
        self.catalogs[spec.name] = MemoryCatalog()

    def look(self, name: str, scope: Scope) -> Snapshot:
        return self.snapshot


def imported(folder: Path, snapshot: Snapshot, **how: Any) -> tuple[list[FileChange], list[str]]:
    said: list[str] = []
    session = Live(said.append)
    session.snapshot = snapshot
    (folder / "c.yaml").write_text(HEAD)
    request = ImportRequest((str(folder / "c.yaml"),), folder / "live", **how)
    return list(import_catalogs(request, session).changes), said


def declared(folder: Path) -> Desired:
    found = load([str(folder / "live")])
    assert [d for d in found.diagnostics if d.severity == "error"] == []
    return found.desired


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted((folder / "live").rglob("*")) if p.is_file()}


def plain(desired: Desired) -> Any:
    """Without where it is written."""
    tables = {i: replace(t, source=None) for i, t in desired.tables.get("lake", {}).items()}  # type: ignore[arg-type]
    spaces = {i: replace(n, source=None) for i, n in desired.namespaces.get("lake", {}).items()}  # type: ignore[arg-type]
    return spaces, tables


@pytest.mark.slow
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(SNAPSHOT, SNAPSHOT, st.booleans(), st.booleans())
def test_the_second_import_is_like_a_first(before: Snapshot, after: Snapshot, split: bool, windows: bool) -> None:
    """Objects of both: what the files say in the end is what a fresh import says. Comments stay. A third import finds
    nothing to do."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        here, fresh = Path(one), Path(other)
        imported(here, before, split_tables=split)
        for file in (here / "live").rglob("*.yaml"):
            text = "# mine\n" + file.read_bytes().decode() + "# end\n"
            file.write_bytes(text.replace("\n", "\r\n").encode() if windows else text.encode())
        mine = set(contents(here))
        kept = {i: d for kind in plain(declared(here)) for i, d in kind.items()}
        imported(here, after, split_tables=split)
        imported(fresh, after)
        done = contents(here)
        assert all(done[file].startswith(b"# mine") and b"\n# end" in done[file] for file in mine)
        found, wanted = plain(declared(here)), plain(declared(fresh))
        for kind in (0, 1):
            for ident, object_ in wanted[kind].items():
                left = kept.get(ident)
                assert _said(found[kind][ident], left, object_) == _said(object_, left, object_), ident
        assert imported(here, after, split_tables=split)[0] == []
        assert contents(here) == done


def _said(object_: Any, before: Any, wanted: Any) -> dict[str, Any]:
    """What is compared. What the document did not say before (protection, all of a schema) it says neither afterwards,
    and about a dataset that is not there nothing is known."""
    values: dict[str, Any] = {"properties": dict(object_.properties)}
    if before is None or before.protect is not None:
        values["protect"] = bool(object_.protect)
    if getattr(wanted, "fields", None) is not None:
        values |= {"config": dict(object_.config), "schema_metadata": dict(object_.schema_metadata)}
        if before is None or (before.fields is not None and not before.at_least):
            values["fields"] = {f.name: f for f in object_.fields or ()}
    return values


def table(*names: str, properties: Any = None, **dataset: Any) -> Present:
    fields = tuple(Field(n.split(":")[0], parse_type(n.split(":")[1])) for n in names)
    return Present(
        TableState("x", properties or {}, Marks("default"), DatasetState(fields, owner="default", **dataset))
    )


def snapshot(**tables: Present) -> Snapshot:
    return Snapshot({("a",): Present(NamespaceState({"team": "x"}))}, {("a", n): t for n, t in tables.items()})


WRITTEN = """\
# Ours. Ask ada.
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [a]}
spec: {properties: {team: '${var:team:-x}'}}  # from CI
---
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [a, t]}
spec:
  # the columns
  schema:
  - {name: id, type: int64}     # key
  - name: v                     # vector
    type: fixed_size_list<float>[8]

  properties:
    keep: 'yes'                 # why
    old: one                    # gone soon
  checks: {rowCount: {min: 1}}
"""
VECTOR = "v:fixed_size_list<float32>[8]"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "live/lake").mkdir(parents=True)
    (tmp_path / "live/lake/catalog.yaml").write_text(HEAD)
    (tmp_path / "live/lake/a.yaml").write_text(WRITTEN)
    return tmp_path


def text(folder: Path) -> str:
    return (folder / "live/lake/a.yaml").read_text()


def test_what_means_the_same_is_left_as_it_is_written(files: Path) -> None:
    """A reference, another spelling of a type, quotes: none of it is a difference."""
    live = snapshot(t=table("id:int64", VECTOR, properties={"keep": "yes", "old": "one"}))
    assert imported(files, live)[0] == []
    assert text(files) == WRITTEN


def test_only_what_differs_changes(files: Path) -> None:
    live = snapshot(t=table("id:string", VECTOR, "new:bool", properties={"keep": "yes", "more": "${x}"}))
    changes, _ = imported(files, live)
    assert [c.path.removeprefix(str(files)) for c in changes] == ["/live/lake/a.yaml"]
    expected = WRITTEN.replace("{name: id, type: int64}", "{name: id, type: string}")
    expected = expected.replace("    old: one                    # gone soon\n", "    more: '$${x}'\n")
    expected = expected.replace("float>[8]\n", "float>[8]\n  - {name: new, type: bool}\n")
    assert text(files) == expected
    assert imported(files, live)[0] == []


def test_new_tables_join_their_namespace_wherever_it_is_declared(files: Path) -> None:
    (files / "live/lake/a.yaml").rename(files / "live/by-hand.yml")
    live = snapshot(t=table("id:int64", VECTOR, properties={"keep": "yes", "old": "one"}), u=table("id:int64"))
    changes, said = imported(files, live)
    assert [c.path.removeprefix(str(files)) for c in changes] == ["/live/by-hand.yml"]
    assert changes[0].after.startswith(WRITTEN + "---\n")
    assert changes[0].after.count("kind: Table") == 2
    assert said == []
    assert imported(files, live)[0] == []


def test_what_is_gone_stays_and_is_told(files: Path) -> None:
    changes, said = imported(files, snapshot())
    assert (changes, text(files)) == ([], WRITTEN)
    assert said == [f"note: lake:a.t is declared at {files}/live/lake/a.yaml:7:1 and not live; it stays in the file"]


def test_a_document_with_anchors_is_left_alone(files: Path) -> None:
    before = WRITTEN.replace("keep: 'yes'", "keep: &k 'yes'").replace("old: one", "old: *k")
    (files / "live/lake/a.yaml").write_text(before)
    same = snapshot(t=table("id:int64", VECTOR, properties={"keep": "yes", "old": "yes"}))
    assert imported(files, same) == ([], [])
    other = snapshot(t=table("id:int64", VECTOR, properties={"keep": "no", "old": "yes"}), u=table("id:int64"))
    changes, said = imported(files, other)
    assert [c.after for c in changes] == [text(files)]
    assert text(files).startswith(before + "---\n")
    assert [line.rpartition(": ")[2] for line in said] == ["it has anchors or aliases"]


@pytest.mark.parametrize(
    ("spec", "live"),
    [
        ("{description: x, ignoreDifferences: [description, properties.a]}", table("id:int64", properties={"a": "1"})),
        ("{schema: [{name: id, type: int8}], schemaMode: at_least}", table("id:int8", "more:string")),
        ("{schema: [{name: id, type: int8}], ignoreDifferences: [schema.id.type]}", table("id:int64")),
        ("{properties: {a: '1'}}", table("id:int64", properties={"a": "1"})),
        (
            "{schema: [{name: id, type: int8}], indexes: [{column: id, type: btree}]}",
            table("id:int8", indexes=(Index("id_idx", "id", "btree", {"other": 1}),)),
        ),
        ("{state: absent}", table("id:int64")),
        ("{schema: [{name: new, type: int64, renamedFrom: id}]}", table("id:int64")),
    ],
)
def test_what_the_manifest_leaves_to_others_stays_so(files: Path, spec: str, live: Present) -> None:
    head, _, _ = WRITTEN.partition("spec:\n")
    before = f"{head}spec: {spec}\n"
    (files / "live/lake/a.yaml").write_text(before)
    assert imported(files, snapshot(t=live))[0] == []
    assert text(files) == before


def test_indexes_and_protection_follow(files: Path) -> None:
    head, _, _ = WRITTEN.partition("spec:\n")
    spec = (
        "spec:\n  schema: [{name: id, type: int64}]\n  protect: true  # why\n  indexes:\n"
        "  - {column: id, type: btree}  # first\n  - {column: id, type: bitmap, name: b}\n"
    )
    (files / "live/lake/a.yaml").write_text(head + spec)
    indexes = (Index("id_idx", "id", "zonemap"), Index("c", "id", "bitmap"))
    live = snapshot(t=table("id:int64", indexes=indexes))
    imported(files, live)
    assert text(files) == head + (
        "spec:\n  schema: [{name: id, type: int64}]\n  protect: false  # why\n  indexes:\n"
        "  - {column: id, type: zonemap}  # first\n  - {column: id, type: bitmap, name: c}\n"
    )
    assert imported(files, live)[0] == []


INDEX_LINES = [
    (
        "{column: v, type: ivf_pq, params: {metric: l2, num_partitions: 2, num_sub_vectors: 8}}   # pq",
        Index("v_idx", "v", "ivf_flat", {"metric": "cosine"}),
        "{column: v, type: ivf_flat, params: {metric: cosine}}   # pq",
    ),
    (
        "{column: v, type: ivf_pq, params: {num_sub_vectors: 8}}   # pq",
        Index("v_idx", "v", "ivf_flat"),
        "{column: v, type: ivf_flat}   # pq",
    ),
    (
        "{column: v, type: ivf_flat}   # flat",
        Index("v_idx", "v", "ivf_pq", {"num_sub_vectors": 8}),
        "{column: v, type: ivf_pq, params: {num_sub_vectors: 8}}   # flat",
    ),
    (
        "{column: v, type: ivf_flat}   # v",
        Index("v_idx", "w", "ivf_flat"),
        "{column: w, type: ivf_flat, name: v_idx}   # v",
    ),
    (
        "{column: v, type: ivf_flat, name: i}   # v",
        Index("i", "w", "ivf_sq"),
        "{column: w, type: ivf_sq, name: i}   # v",
    ),
]


@pytest.mark.parametrize(("before", "live", "after"), INDEX_LINES)
def test_an_index_of_another_kind_stays_in_its_line(files: Path, before: str, live: Index, after: str) -> None:
    """With the comment there."""
    head, _, _ = WRITTEN.partition("spec:\n")
    columns = "spec:\n  schema:\n  - {name: id, type: int64}\n" + "".join(
        f"  - {{name: {c}, type: 'fixed_size_list<float32>[16]'}}\n" for c in "vw"
    )
    more = "  - {column: id, type: btree}\n"
    (files / "live/lake/a.yaml").write_text(f"{head}{columns}  indexes:\n  - {before}\n{more}")
    vectors = [f"{c}:fixed_size_list<float32>[16]" for c in "vw"]
    state = snapshot(t=table("id:int64", *vectors, indexes=(live, Index("id_idx", "id", "btree"))))
    imported(files, state)
    assert text(files) == f"{head}{columns}  indexes:\n  - {after}\n{more}"
    assert imported(files, state)[0] == []


def test_a_file_that_cannot_be_added_to_is_in_the_way(files: Path) -> None:
    from reconciler.session import Failure

    (files / "live/lake/a.yaml").write_bytes(WRITTEN.replace("\n", "\r\n", 3).encode())
    before = contents(files)
    with pytest.raises(Failure, match=r"a\.yaml is in the way.*its lines end in different ways.*nothing was written"):
        imported(files, snapshot(u=table("id:int64")))
    assert contents(files) == before


def test_a_dry_run_writes_nothing(files: Path) -> None:
    before = contents(files)
    changes, _ = imported(files, snapshot(u=table("id:int64")), dry_run=True)
    assert len(changes) == 1
    assert contents(files) == before


def test_a_file_that_changes_meanwhile_is_not_overwritten(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.manifest.imported_files import ImportedFiles
    from reconciler.session import Failure

    computed = ImportedFiles.changes

    def and_then(self: ImportedFiles) -> Any:
        found = computed(self)
        (files / "live/lake/a.yaml").write_text("# somebody else\n")
        return found

    monkeypatch.setattr(ImportedFiles, "changes", and_then)
    with pytest.raises(Failure, match="was changed while the catalogs were read"):
        imported(files, snapshot(u=table("id:int64")))
    assert text(files) == "# somebody else\n"


def test_secrets_among_the_properties_are_left_out(files: Path) -> None:
    properties = {
        "s3.secret-access-key": "0123456789abcdef0123",
        "partition_key": "a-long-name-of-a-column",
        "tokens": "7",
    }
    changes, said = imported(files, snapshot(u=table("id:int64", properties=properties)))
    (after,) = [c.after for c in changes]
    assert "0123456789abcdef" not in after
    assert "partition_key: a-long-name-of-a-column" in after
    assert "tokens: '7'" in after
    assert any("'s3.secret-access-key' is left out: its name says that it is a secret" in line for line in said)
