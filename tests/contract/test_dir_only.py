"""What only a directory catalog has: markers, records beside the tables, folders of strangers, pylance's own view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from contract.backends import V1, V2, Backend, LocalDir
from contract.lake import US, Lake, held_back, namespace, steps, table
from contract.outsider_dir import DirOutsider, LocalFiles
from contract.sample import FOREIGN, FOREIGN_ROWS
from reconciler.catalog.storage import RESERVED
from reconciler.core.planner import PlanError

COLUMNS = {"id": "int64"}


def make(folder: Path, layout: dict[str, str] | None = None, home: tuple[str, ...] = ()) -> Lake:
    backend = Backend("dir", LocalDir(layout or {}), home=home)
    return Lake(backend, backend.make(folder, lambda name: None), folder)


def root(lake: Lake) -> Path:
    return lake.folder / "lake"


def peer(lake: Lake) -> DirOutsider:
    assert isinstance(lake.outsider, DirOutsider)
    return lake.outsider


ROOTS = pytest.mark.parametrize("layout", [{}, V1], ids=["default", "v1"])
EVERY = pytest.mark.parametrize("layout", [{}, V1, V2], ids=["default", "v1", "v2"])


@EVERY
def test_a_missing_root_is_an_empty_catalog(tmp_path: Path, layout: dict[str, str]) -> None:
    lake = make(tmp_path, layout)
    assert lake.plan([table(("t",), state="absent")]).steps == ()
    assert not root(lake).exists(), "a plan writes nothing"
    lake.reach([table(("t",), COLUMNS)])
    assert peer(lake).listed() == (set(), {("t",)})


def test_pylance_lists_what_we_made(tmp_path: Path) -> None:
    for name, layout in {"default": {}, "v2": V2}.items():
        (tmp_path / name).mkdir()
        lake = make(tmp_path / name, layout)
        docs = [
            namespace(("a",)),
            namespace(("a", "b")),
            *(table(i, COLUMNS) for i in (("r",), ("a", "t"), ("a", "b", "t"))),
        ]
        lake.reach(docs)
        assert peer(lake).listed() == ({("a",), ("a", "b")}, {("r",), ("a", "t"), ("a", "b", "t")})
        opened = lance.dataset(namespace_client=peer(lake).client, table_id=["a", "b", "t"])
        assert opened.schema == FOREIGN


@ROOTS
def test_a_root_table_on_disk(tmp_path: Path, layout: dict[str, str]) -> None:
    lake = make(tmp_path, layout)
    lake.reach([table(("t",))])
    folder, record = root(lake) / "t.lance", root(lake) / "__reconciler/tables/t.json"
    assert [p.name for p in folder.iterdir()] == [".lance-reserved"]
    noted = json.loads(record.read_text())
    assert (noted["table"], noted["owner"], noted["state"]) == ("t", US, "declared")
    lake.reach([table(("t",), COLUMNS)])
    assert (folder / "_versions").is_dir()
    lake.reach([table(("t",), state="absent")])
    assert (folder / ".lance-deregistered").exists()
    assert not record.exists()
    assert peer(lake).listed() == (set(), set()), "pylance alone would still show it"
    lake.reach([table(("t",), COLUMNS)])
    assert not (folder / ".lance-deregistered").exists()
    assert peer(lake).listed() == (set(), {("t",)})


def test_a_table_of_a_namespace_leaves_a_record_when_it_goes(tmp_path: Path) -> None:
    lake = make(tmp_path, V2, ("n",))
    lake.reach([*lake.home(), table(("n", "t"), COLUMNS)])
    folder = peer(lake).folder(("n", "t"))
    lake.reach([*lake.home(), table(("n", "t"), state="absent")])
    (record,) = (root(lake) / "__reconciler/detached").iterdir()
    noted = json.loads(record.read_text())
    assert (noted["object_id"], noted["location"], noted["owner"]) == ("n$t", folder, US)
    lake.reach([*lake.home(), table(("n", "t"), COLUMNS)])
    assert peer(lake).folder(("n", "t")) == folder
    assert list((root(lake) / "__reconciler/detached").iterdir()) == []


def test_a_root_table_that_pylance_deregistered_is_seen_as_pylance_sees_it(tmp_path: Path) -> None:
    """In the default layout the folder is the table: pylance's deregister does not hide it, not even from pylance."""
    lake = make(tmp_path)
    lake.outsider.create_table(("t",), FOREIGN, FOREIGN_ROWS)
    peer(lake).client.deregister_table(ln.DeregisterTableRequest(id=["t"]))
    shown = peer(lake).listed()[1]
    plan = lake.plan([table(("t",), COLUMNS)])
    if ("t",) in shown:
        assert (steps(plan), [k.ident for k in plan.unowned]) == ([], [("t",)])
    else:
        assert {s.blocked_by for s in plan.steps} == {"adopt"}
    lake.unchanged_by(lambda: lake.apply(plan))


def test_a_table_under_a_missing_parent(tmp_path: Path) -> None:
    """pylance lets one declare it. It is nobody's, it stays, and its parent can be made and not be dropped."""
    lake = make(tmp_path, V2, ("n",))
    lake.outsider.create_namespace(("other",))
    lake.outsider.declare_table(("zz", "t"))
    before = lake.outsider.raw_of(("zz", "t"))
    lake.reach([*lake.home(), table(("n", "t"), COLUMNS)])
    lake.reach([namespace(("zz",))])
    plan = lake.plan([namespace(("zz",), state="absent")])
    assert held_back(plan) == [("drop_namespace", ("zz",), "blocked", "not_empty")]
    assert lake.outsider.raw_of(("zz", "t")) == before


@ROOTS
@pytest.mark.parametrize("content", [{}, {"x.csv": "1"}, {"data/x": "1"}], ids=["empty", "file", "folder"])
def test_a_folder_of_a_stranger_is_never_taken(tmp_path: Path, layout: dict[str, str], content: dict[str, str]) -> None:
    lake = make(tmp_path, layout)
    folder = root(lake) / "t.lance"
    folder.mkdir(parents=True)
    for name, text in content.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for docs in ([table(("t",), COLUMNS)], [table(("t",), state="absent")]):
        plan = lake.plan(docs, adopt=True, prune=True)
        assert {(s.verdict, s.blocked_by) for s in plan.steps} <= {("blocked", "unreadable"), ("blocked", "not_owned")}
        assert plan.steps
        lake.unchanged_by(lambda plan=plan: lake.apply(plan))
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == sorted(content)


def with_options(lake: Lake, **options: Any) -> Lake:
    from reconciler.catalog.registry import capabilities_of, connect
    from reconciler.manifest.secrets import connection_options
    from reconciler.model.desired import CatalogSpec, Management
    from reconciler.model.diagnostic import Source

    written = {**lake.site.options, **options}
    spec = CatalogSpec("lake", "dir", {k: v for k, v in written.items() if k != "type"}, Management(), Source("-"))
    capabilities = capabilities_of(spec)
    assert capabilities is not None
    lake.site.options, lake.site.capabilities = written, capabilities
    lake.site.open = lambda: connect(spec, connection_options(spec.options)[0])
    return lake


@ROOTS
def test_plain_folders_are_tables_when_the_catalog_says_so(tmp_path: Path, layout: dict[str, str]) -> None:
    lake = make(tmp_path, layout)
    lance.write_dataset(pa.Table.from_pylist(FOREIGN_ROWS, FOREIGN), str(root(lake) / "plain"))
    (root(lake) / "docs").mkdir()
    assert lake.plan([]).summary == lake.plan([table(("plain",), COLUMNS)]).summary, "declared, it is there anyway"
    assert lake.plan([]).catalogs["lake"].tables == 0, "without the switch it is not listed"
    lake = with_options(lake, plain_folders=True)
    plan = lake.plan([table(("plain",), COLUMNS)])
    assert (steps(plan), [k.ident for k in plan.unowned]) == ([], [("plain",)])
    lake.reach([table(("plain",), {**COLUMNS, "more": "string"})], adopt=True)
    assert not (root(lake) / "plain.lance").exists()
    assert lance.dataset(str(root(lake) / "plain")).count_rows() == 2
    plan = lake.plan([table(("docs",), COLUMNS)], adopt=True)
    assert {s.blocked_by for s in plan.steps} == {"unreadable"}
    lake.reach([table(("plain",), state="absent")])
    assert lance.dataset(str(root(lake) / "plain")).count_rows() == 2
    lake.reach([table(("plain",), {**COLUMNS, "more": "string"})])


@pytest.mark.parametrize("layout", [{}, V2], ids=["default", "v2"])
@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
def test_a_dataset_under_the_root_is_registered(tmp_path: Path, layout: dict[str, str], absolute: bool) -> None:
    lake = make(tmp_path, layout, ("n",))
    data = root(lake) / "from-elsewhere"
    lance.write_dataset(pa.Table.from_pylist(FOREIGN_ROWS, FOREIGN), str(data))
    where = str(data) if absolute else "from-elsewhere"
    docs = [*lake.home(), table(("n", "t"), COLUMNS, location=where)]
    plan = lake.plan(docs)
    assert held_back(plan)[0][1:] == (("n", "t"), "blocked", "adopt")
    lake.reach(docs, adopt=True)
    assert peer(lake).folder(("n", "t")) == "from-elsewhere"
    assert lance.dataset(namespace_client=peer(lake).client, table_id=["n", "t"]).count_rows() == 2
    assert peer(lake).state().tables["n", "t"].owner == US


def test_a_link_to_a_dataset_is_refused_by_the_plan(tmp_path: Path) -> None:
    """Not by the step only: what a plan allows can be done."""
    lake = make(tmp_path, V2, ("n",))
    lake.reach(lake.home())
    lance.write_dataset(pa.Table.from_pylist(FOREIGN_ROWS, FOREIGN), str(root(lake) / "data"))
    (root(lake) / "link").symlink_to(root(lake) / "data")
    plan = lake.plan([*lake.home(), table(("n", "t"), COLUMNS, location="link")], adopt=True)
    assert {s.blocked_by for s in plan.steps} == {"location_conflict"}
    assert "'link' is a link to 'data'" in plan.steps[0].reason
    lake.unchanged_by(lambda: lake.apply(plan))


def test_an_entry_without_data_gets_none_inside_a_dataset(tmp_path: Path) -> None:
    """Its row was pointed there, at a folder with the marker of a declared table."""
    lake = make(tmp_path, V2, ("n",))
    docs = [*lake.home(), table(("n", "t"), COLUMNS), table(("n", "f"), COLUMNS)]
    lake.reach(docs)
    lance.write_dataset(pa.Table.from_pylist(FOREIGN_ROWS, FOREIGN), str(root(lake) / "data"))
    inside = root(lake) / "data" / "data" / "t"
    inside.mkdir()
    (inside / RESERVED).touch()
    manifest = lance.dataset(str(root(lake) / "__manifest"))
    (row,) = [r for r in manifest.to_table().to_pylist() if r["object_id"] == "n$t"]
    moved = pa.Table.from_pylist([{**row, "location": "data/data/t"}], schema=manifest.schema)
    manifest.merge_insert("object_id").when_matched_update_all().execute(moved)
    plan = lake.plan(docs, adopt=True)
    assert held_back(plan)[0] == ("create_dataset", ("n", "t"), "blocked", "location_conflict")
    lake.unchanged_by(lambda: lake.apply(plan))


def test_a_location_without_a_dataset_is_a_plan_error(tmp_path: Path) -> None:
    from reconciler.core.planner import PlanError

    lake = make(tmp_path, V2, ("n",))
    lake.reach(lake.home())
    with pytest.raises(PlanError) as refused:
        lake.plan([*lake.home(), table(("n", "t"), COLUMNS, location="nothing-here")])
    assert [d.code for d in refused.value.diagnostics] == ["P102"]
    assert lake.refusals([*lake.home(), table(("n", "t"), COLUMNS, location="/elsewhere/x")]) == ["M414"]


def test_the_foreign_rows_of_the_manifest_are_carried_along(tmp_path: Path) -> None:
    lake = make(tmp_path, V2, ("n",))
    lake.outsider.create_namespace(("their",), {"a": "b"})
    lake.outsider.create_table(("their", "t"), FOREIGN, FOREIGN_ROWS)
    before = {i: r for i, r in peer(lake)._rows().items() if i[0] == "their"}
    docs = [*lake.home(), *(table(("n", f"t{i}"), COLUMNS) for i in range(4))]
    lake.reach(docs)
    lake.reach([*lake.home(), *(table(("n", f"t{i}"), state="absent") for i in range(4))])
    assert {i: r for i, r in peer(lake)._rows().items() if i[0] == "their"} == before
    peer(lake).client.create_namespace(ln.CreateNamespaceRequest(id=["their", "more"]))
    assert peer(lake).listed() == ({("their",), ("their", "more"), ("n",)}, {("their", "t")})


def _dataset(where: Path) -> dict[str, str]:
    lance.write_dataset(pa.table({"id": [1, 2]}), str(where))
    return LocalFiles(where).all()


@pytest.mark.parametrize("layout", [{}, V2], ids=["default", "v2"])
def test_a_folder_is_registered_only_where_no_other_data_is(tmp_path: Path, layout: dict[str, str]) -> None:
    """`location` names a dataset below the root: never inside or around a table or one that is a table already."""
    lake = make(tmp_path, layout, ("n",))
    lake.reach([*lake.home(), table(lake.t("live"), COLUMNS)])
    live = root(lake) / peer(lake).folder(lake.t("live"))
    before = LocalFiles(live).all()
    _dataset(live / "data" / "inner")
    _dataset(root(lake) / "loose" / "a")
    _dataset(root(lake) / "loose" / "a" / "x" / "b")
    (root(lake) / "link").symlink_to(live)
    verdicts = {
        f"{live.name}/data/inner": "location_conflict",
        f"./{lake.folder.name}/../{live.name}/data/inner": "location_conflict",
        "loose/a/x/b": "location_conflict",
        "loose/a": None,
        "link": "P104",
        f"link/../{live.name}": "P104",
        f"{root(lake)}/./{live.name}/": "P104",
    }
    for location, word in verdicts.items():
        docs = [*lake.home(), table(lake.t("live"), COLUMNS), table(lake.t("new"), COLUMNS, location=location)]
        if word == "P104":
            with pytest.raises(PlanError) as refused:
                lake.plan(docs, adopt=True)
            assert refused.value.diagnostics[0].code == word, location
            continue
        plan = lake.plan(docs, adopt=True)
        (first, *_) = [s for s in plan.steps if s.change.ident == lake.t("new")]
        assert first.blocked_by == word, (location, first.reason)
        if word is not None:
            lake.unchanged_by(lambda plan=plan: lake.apply(plan))
    assert {p: d for p, d in LocalFiles(live).all().items() if not p.startswith("data/inner/")} == before


@EVERY
def test_nothing_is_made_in_a_root_inside_a_dataset(tmp_path: Path, layout: dict[str, str]) -> None:
    """A path that goes one folder too deep: `path: ./lake/images.lance`."""
    before = _dataset(tmp_path / "lake")
    lake = make(tmp_path, layout)
    plan = lake.plan([table(("t",), COLUMNS)])
    assert {s.blocked_by for s in plan.steps} == {"location_conflict"}
    assert str(tmp_path / "lake") in plan.steps[0].reason
    lake.unchanged_by(lambda: lake.apply(plan))
    assert LocalFiles(tmp_path / "lake").all() == before


def test_a_link_in_the_place_of_a_table(tmp_path: Path) -> None:
    """Two declared root tables, one a link to the other: neither gets a step."""
    lake = make(tmp_path)
    lake.reach([table(("a",), COLUMNS)])
    (root(lake) / "b.lance").symlink_to(root(lake) / "a.lance")
    wide = {"id": "int64", "more": "string"}
    plan = lake.plan([table(("a",), wide), table(("b",), COLUMNS)], adopt=True)
    assert {s.blocked_by for s in plan.steps} == {"location_conflict"}
    lake.unchanged_by(lambda: lake.apply(plan))
    assert [s.verdict for s in lake.plan([table(("a",), wide)]).steps] == ["allowed"]
