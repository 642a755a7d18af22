"""Graphs: what leads to what, and text that its reader takes as text. Graphviz's language is read by pydot, SVG by a
strict XML parser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pydot
import pytest
from cli.cli_runs import catalog, namespace, reconciler, table, write
from render.plans import GOLDEN, TRAPS, big, golden, hostile, plan, step

from reconciler.model.change import CreateNamespace, DropColumns
from reconciler.model.plan import Plan
from reconciler.render.as_json import plan_json
from reconciler.render.graph import Edge, Graph, Node, first, with_what_it_needs
from reconciler.render.graph_layout import layers, places
from reconciler.render.graph_svg import svg
from reconciler.render.graph_text import MERMAID_EDGES, MERMAID_TEXT, dot, mermaid
from reconciler.render.plan_graph import object_graph, plan_graph
from reconciler.render.safe_text import bounded, safe

SVG = "{http://www.w3.org/2000/svg}"
MERMAID_LINE = re.compile(
    r'flowchart LR|  n\d+\["[A-Za-z0-9 ._:/#;<>-]*"\]:::[a-z]+|  n\d+ -->(\|"[A-Za-z0-9 ._:/#;-]*"\|)? n\d+'
    r"|  classDef [a-z]+ [a-z0-9#:, -]+"
)


def drawn(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Name -> label, and the arrows, as pydot reads them."""
    (read,) = pydot.graph_from_dot_data(text) or ()
    nodes = {n.get_name(): n.get("label") for n in read.get_nodes() if n.get_name() not in ("node", "edge")}
    return nodes, [(e.get_source(), e.get_destination()) for e in read.get_edges()]


def label(node: Node) -> str:
    shown = (bounded(safe(x), 80).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for x in node.lines)
    return '"' + "\\n".join(shown) + '"'


@pytest.mark.parametrize("name", [*(name for name in GOLDEN if golden(name).steps)][::6])
def test_every_format_has_every_step_and_every_need(name: str) -> None:
    graph = plan_graph(golden(name))
    number = {node.id: f"n{i}" for i, node in enumerate(graph.nodes, 1)}
    nodes, arrows = drawn(dot(graph))
    assert nodes == {number[node.id]: label(node) for node in graph.nodes}
    needed = {(number[need], number[s.id]) for s in golden(name).steps for need in s.needs}
    assert set(arrows) == needed
    root = ET.fromstring(svg(graph))
    assert len(root.findall(f".//{SVG}g")) == len(graph.nodes)
    assert len(root.findall(f"{SVG}path")) == len(graph.edges)
    lines = mermaid(graph).splitlines()
    assert [x for x in lines if not MERMAID_LINE.fullmatch(x)] == []
    assert sum("-->" in x for x in lines) == len(graph.edges)


def test_hostile_texts_stay_texts() -> None:
    graph = plan_graph(hostile())
    nodes, arrows = drawn(dot(graph))
    assert list(nodes.values()) == [label(node) for node in graph.nodes]
    assert len(arrows) == len(graph.edges) == 2 * len(TRAPS)
    root = ET.fromstring(svg(graph))
    assert {e.tag.removeprefix(SVG) for e in root.iter()} == {
        "svg", "style", "title", "defs", "marker", "path", "g", "rect", "text"
    }  # fmt: skip
    assert {a for e in root.iter() for a in e.attrib if a.startswith("on") or a.endswith("href")} == set()
    assert svg(graph).isascii()
    assert [x for x in mermaid(graph).splitlines() if not MERMAID_LINE.fullmatch(x)] == []


@pytest.mark.slow
def test_what_does_not_fit_is_counted() -> None:
    graph = plan_graph(big(1200))
    boxes = [
        line for line in dot(graph).splitlines() if line.startswith("  n") and "[label=" in line and "->" not in line
    ]
    assert len(boxes) == 501
    assert boxes[-1].startswith('  n501 [label="700 more')
    assert "700 more" in svg(graph)
    text = mermaid(graph)
    shown = [x for x in text.splitlines() if "]:::" in x]
    assert len(text) <= MERMAID_TEXT
    assert text.count("-->") <= MERMAID_EDGES
    assert f'"{1200 - (len(shown) - 1)} more' in shown[-1]


def mixed(harmless: int, blocked: int, destructive: int) -> Plan:
    """In the order of a plan: what is deleted comes last."""
    marks = golden("create-everything").steps[0].change.marks  # type: ignore[union-attr]
    count = harmless + blocked + destructive
    steps = [step(i + 1, CreateNamespace((f"n{i}",), {}, marks)) for i in range(count)]
    held = {"verdict": "blocked", "blocked_by": "adopt"}
    steps[harmless : harmless + blocked] = [replace(s, **held) for s in steps[harmless : harmless + blocked]]
    steps[harmless + blocked :] = [
        step(i + 1, DropColumns(("n", f"t{i}"), ("c",)), risk="destructive") for i in range(harmless + blocked, count)
    ]
    return plan(tuple(steps))


def test_what_is_destructive_or_blocked_is_drawn_first() -> None:
    graph = plan_graph(mixed(600, 20, 30))
    cut = first(graph)
    kept = [*range(450), *range(600, 650)]
    assert [n.id for n in cut.nodes[:-1]] == [f"s{i + 1}" for i in kept]
    assert cut.nodes[-1].lines == ("150 more", "not shown; --target narrows")
    for text in (dot(graph), svg(graph)):
        assert ("drop_columns" in text, "blocked: adopt" in text) == (True, True)
    assert mermaid(graph).count("drop_columns") == 30


def test_when_not_even_those_fit_what_will_happen_comes_before_what_will_not() -> None:
    cut = first(plan_graph(mixed(10, 60, 70)), 100)
    assert [n.id for n in cut.nodes[:-1]] == [f"s{i + 1}" for i in (*range(10, 40), *range(70, 140))]
    assert cut.nodes[-1].lines == (
        "40 more",
        "30 of them destructive, deleting, blocked or unsupported",
        "not shown; --target narrows",
    )


def test_objects_with_such_a_step_are_drawn_first_too() -> None:
    cut = first(object_graph(mixed(30, 5, 5)), 10)
    assert [n.id for n in cut.nodes[:-1]] == [f"s{i + 1}" for i in range(30, 40)]


def test_a_plan_without_steps_is_a_picture_that_says_so() -> None:
    empty = plan_graph(plan(()))
    assert drawn(dot(empty)) == ({"n1": '"Steps of the plan\\nnone"'}, [])
    assert "Steps of the plan<br/>none" in mermaid(empty)
    assert ">none</text>" in svg(empty)


def test_a_small_graph_is_whole() -> None:
    graph = plan_graph(big(300))
    assert first(graph) is graph
    assert "more" not in dot(graph)


def test_columns_are_by_the_longest_way_and_no_two_boxes_share_a_place() -> None:
    graph = plan_graph(big(400))
    ids, edges = [n.id for n in graph.nodes], [(e.source, e.target) for e in graph.edges]
    column = layers(ids, edges)
    assert all(column[a] < column[b] for a, b in edges)
    assert len(set(places(ids, edges).values())) == len(ids)
    assert layers("abc", [("a", "b"), ("b", "c"), ("a", "c")]) == {"a": 0, "b": 1, "c": 2}
    assert layers("abcd", [("a", "b"), ("b", "c"), ("d", "c")])["d"] == 1


def test_a_circle_in_a_file_is_drawn_too() -> None:
    nodes = tuple(Node(x, (x,), "create") for x in "abc")
    graph = Graph("circle", nodes, (Edge("a", "b"), Edge("b", "a"), Edge("b", "c")))
    assert len(ET.fromstring(svg(graph)).findall(f".//{SVG}g")) == 3


def test_a_part_comes_with_what_it_needs() -> None:
    nodes = tuple(Node(x, (x,), "create") for x in "abcde")
    graph = Graph("", nodes, (Edge("a", "b"), Edge("b", "c"), Edge("c", "d"), Edge("a", "e")))
    part = with_what_it_needs(graph, ["c"])
    assert [n.id for n in part.nodes] == ["a", "b", "c"]
    assert len(part.edges) == 2


def test_objects_have_one_box_each() -> None:
    made = golden("create-everything")
    graph = object_graph(made)
    assert len(graph.nodes) == len({(s.key, s.deletes) for s in made.steps})
    assert all(e.source != e.target for e in graph.edges)


MANIFESTS = (
    catalog() + namespace("raw") + namespace("gold", spec='{renamedFrom: ["silver"]}') + table("raw", "old")
    + table("raw", "gone").replace("schema: [{name: id, type: int64}]", "state: absent")
    + table("raw", "files", spec='data: {source: {format: csv, path: "in/*.csv"}, mode: append}')
    + table("gold", "copy", spec="data: {source: {format: lance, table: {catalog: lake, id: [raw, old]}}, mode: once}")
    + table("gold", "moved", spec='migration: {from: {catalog: lake, id: ["raw", "files"]}}')
)  # fmt: skip


def test_manifests_show_what_is_where_and_where_rows_come_from(tmp_path: Path) -> None:
    write(tmp_path, MANIFESTS)
    run = reconciler(tmp_path, "graph", "m.yaml")
    assert (run.code, run.err) == (0, "")
    nodes, arrows = drawn(run.out)
    name = {k: v.strip('"').split("\\n")[0] for k, v in nodes.items()}
    found = {(name[a], name[b]) for a, b in arrows}
    assert found == {
        ("lake", "raw"), ("lake", "gold"), ("silver", "gold"), ("raw", "raw.old"), ("raw", "raw.gone"),
        ("raw", "raw.files"), ("in/*.csv", "raw.files"), ("gold", "gold.copy"), ("raw.old", "gold.copy"),
        ("gold", "gold.moved"), ("raw.files", "gold.moved"),
    }  # fmt: skip
    assert '"raw.gone\\ntable, to be removed"' in nodes.values()
    assert not (tmp_path / "lake").exists()
    part = reconciler(tmp_path, "graph", "m.yaml", "--target", "gold.copy")
    assert {v.strip('"').split("\\n")[0] for v in drawn(part.out)[0].values()} == {
        "lake", "gold", "silver", "raw", "raw.old", "gold.copy"
    }  # fmt: skip


def saved(folder: Path, made: Plan) -> None:
    (folder / "plan.json").write_text(plan_json(made))


def test_a_saved_plan_in_every_format(tmp_path: Path) -> None:
    saved(tmp_path, golden("create-everything"))
    for form, begins in (("dot", "digraph"), ("mermaid", "flowchart"), ("svg", "<svg")):
        run = reconciler(tmp_path, "graph", "--plan", "plan.json", "--format", form)
        assert (run.code, run.err) == (0, "")
        assert run.out.startswith(begins)
        assert run.out == reconciler(tmp_path, "graph", "--plan", "plan.json", "--format", form).out
    some = reconciler(tmp_path, "graph", "--plan", "plan.json", "--target", "vision")
    assert len(drawn(some.out)[0]) == 1


def test_what_is_wrong_with_the_command_line_is_said(tmp_path: Path) -> None:
    write(tmp_path, MANIFESTS)
    saved(
        tmp_path, plan((step(1, CreateNamespace(("vision",), {}, golden("create-everything").steps[0].change.marks)),))
    )
    for words, told in (
        ((), "give manifests (PATH...) or a saved plan (--plan FILE)"),
        (("m.yaml", "--plan", "plan.json"), "one of both"),
        (("m.yaml", "--target", "gold.cop"), "did you mean gold.copy?"),
        (("--plan", "plan.json", "--target", "visiom"), "did you mean vision?"),
        (("m.yaml", "--catalog", "lakes"), "did you mean lake?"),
        (("--plan", "m.yaml"), "is not JSON"),
    ):
        run = reconciler(tmp_path, "graph", *words)
        assert (run.code, run.out) == (1, ""), words
        assert told in run.err
    (tmp_path / "m.yaml").write_text(MANIFESTS.replace("int64", "int63"))
    run = reconciler(tmp_path, "graph", "m.yaml")
    assert run.code == 1
    assert "m.yaml:" in run.err


def test_no_secret_of_a_source_is_drawn(tmp_path: Path) -> None:
    source = 'data: {source: {format: jdbc, url: "jdbc:x://h/db", table: t, password: "${env:CANARY}"}, mode: once}'
    write(tmp_path, catalog() + namespace("raw") + table("raw", "t", spec=source))
    for form in ("dot", "mermaid", "svg"):
        run = reconciler(tmp_path, "graph", "m.yaml", "--format", form, env={"CANARY": "canary-7f"})
        assert run.code == 0, run.err
        assert "canary" not in run.out.lower()
        assert "jdbc source" in run.out
