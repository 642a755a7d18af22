"""Each oddity of YAML files has one defined result."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.yaml_fast import MAX_NODES
from reconciler.manifest.yaml_reader import documents

from .support import CATALOG, codes, load_bytes, load_text, namespace, places, table


def test_good_documents_have_no_diagnostics(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, namespace("vision"), table("vision, images"))
    assert (loaded.diagnostics, loaded.documents) == ([], 3)
    assert loaded.desired.tables["lake"][("vision", "images")].source.line == 10


def test_duplicate_key_names_both_places(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG + "kind: Catalog\n")
    assert codes(loaded) == ["M106"]
    assert places(loaded, "M106") == [(5, 1)]
    assert "line 2, column 1" in loaded.diagnostics[0].message


def test_anchors_aliases_and_merge_keys(tmp_path: Path) -> None:
    spec = """\
        properties: &base {team: vision, tier: gold}
        config: {<<: *base, tier: silver}
        schemaMetadata: {<<: [{a: first}, {a: second, b: "2"}]}
        """
    loaded = load_text(tmp_path, CATALOG, table("t", spec))
    assert codes(loaded) == []
    found = loaded.desired.tables["lake"][("t",)]
    assert dict(found.config) == {"team": "vision", "tier": "silver"}
    assert dict(found.schema_metadata) == {"a": "first", "b": "2"}


def test_merge_key_needs_a_mapping(tmp_path: Path) -> None:
    assert "M113" in codes(load_text(tmp_path, CATALOG, table("t", "properties: {<<: text}")))


def test_unknown_alias(tmp_path: Path) -> None:
    assert "M110" in codes(load_text(tmp_path, CATALOG, table("t", "properties: *nothing")))


@pytest.mark.parametrize("spec", ["properties: &a {x: *a}", "allow: &a [*a]", "properties: &a {<<: *a}"])
def test_cyclic_alias(tmp_path: Path, spec: str) -> None:
    assert "M111" in codes(load_text(tmp_path, CATALOG, table("t", spec)))


def test_billion_laughs_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]" for i in range(1, 12)]
    assert codes(load_text(tmp_path, "\n".join(lines), CATALOG)) == ["M109"]


def test_billion_laughs_by_merge_keys_is_refused(tmp_path: Path) -> None:
    keys = ", ".join(f"k{i}: v" for i in range(1000))
    uses = "\n".join(f"  x{i}: {{<<: *big}}" for i in range(1000))
    assert codes(load_text(tmp_path, f"a: &big {{{keys}}}\nb:\n{uses}\n")) == ["M109"]


def test_tab_indentation(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, "a:\n\tb: 1\n")
    assert codes(loaded) == ["M105"]
    assert "tabs" in loaded.diagnostics[0].hint
    assert places(loaded, "M105") == [(2, 1)]


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    loaded = load_bytes(tmp_path, b"\xef\xbb\xbf" + CATALOG.encode())
    assert codes(loaded) == []
    assert loaded.desired.catalogs["lake"].source.column == 1


def test_other_line_ends(tmp_path: Path) -> None:
    text = CATALOG + "---\n" + table("t", "properties: {a: no}")
    loaded = load_bytes(tmp_path, text.replace("\n", "\r\n").encode())
    assert places(loaded, "M206") == [(10, 19)]


def test_empty_documents_are_ignored(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, "", "# only a comment\n", CATALOG, "", "")
    assert (codes(loaded), loaded.documents) == ([], 1)


def test_not_utf8_names_the_line_and_goes_on(tmp_path: Path) -> None:
    text = CATALOG.encode() + b"# caf\xe9\n---\n" + table("t", "properties: {a: no}").encode()
    loaded = load_bytes(tmp_path, text)
    assert places(loaded, "M103") == [(5, 6)]
    assert "M206" in codes(loaded)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    assert codes(load_bytes(tmp_path, CATALOG.encode(encoding))) == ["M103"]


@pytest.mark.parametrize("char", ["\0", "\x07", "\x1b", "\x7f", "\ufffe"])
def test_forbidden_characters(tmp_path: Path, char: str) -> None:
    loaded = load_bytes(tmp_path, (CATALOG + f"# {char}\n").encode())
    assert codes(loaded) == ["M104"]
    assert places(loaded, "M104") == [(5, 3)]


def test_escaped_control_character_is_a_value(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", 'properties: {a: "\\x07"}'))
    assert codes(loaded) == []
    assert loaded.desired.tables["lake"][("t",)].properties["a"] == "\x07"


def test_syntax_error_hides_nothing_else(tmp_path: Path) -> None:
    bad = table("t", "properties: {a: no}")
    loaded = load_text(tmp_path, CATALOG, bad, "a: [1, 2\nb: }\n", bad.replace("[t]", "[u]"))
    assert codes(loaded) == ["M206", "M105", "M206"]
    assert places(loaded, "M206") == [(10, 19), (19, 19)]


DEEP = "[" * 120 + "]" * 120


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("--- @x\n", "M105"),
        ("--- {b: c}}\n", "M105"),
        ("--- b: c: d\nx: y\n", "M105"),
        ("--- &a &b x\n", "M105"),
        (f"--- {DEEP}\n", "M108"),
        (f"--- &a {DEEP}\n", "M108"),
    ],
)
def test_what_is_wrong_behind_a_marker_is_read_once(tmp_path: Path, wrong: str, code: str) -> None:
    """The document has begun: to go on at its marker would be to read it again."""
    for before in ("", "a: b\n", "a: b\n---\nc: [1,\n"):
        line = before.count("\n") + 1
        found = [(type(d).__name__, d.line, d.column) for d in documents(f"{before}{wrong}---\nd: e\n")]
        assert len(found) == len(set(found)), found
        assert [d for d in found if d[1] == line and d[2] > 1], found
        assert found[-1] == ("Document", f"{before}{wrong}".count("\n") + 2, 1)
    loaded = load_bytes(tmp_path, f"{CATALOG}{wrong}---\n{CATALOG.replace('lake}', 'pond}')}".encode())
    assert code in codes(loaded)
    assert sorted(loaded.desired.catalogs) == ["lake", "pond"]


def test_a_document_with_an_error_behind_it_is_declared_once(tmp_path: Path) -> None:
    flow = "--- {apiVersion: reconciler.lance/v1, kind: Namespace, metadata: {catalog: lake, id: [n]}}}\n"
    assert codes(load_bytes(tmp_path, (CATALOG + flow).encode())) == ["M105"]


def test_syntax_error_after_an_anchor(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, "a: &x 1\nb: [", CATALOG.replace("lake}", "pond}"))
    assert codes(loaded) == ["M105"]
    assert sorted(loaded.desired.catalogs) == ["lake", "pond"]


@pytest.mark.parametrize("text", ["[" * 50_000, "- " * 50_000, "{a: " * 50_000, "? " * 50_000])
def test_deep_nesting(tmp_path: Path, text: str) -> None:
    loaded = load_text(tmp_path, CATALOG, text + "\n", CATALOG.replace("lake}", "pond}"))
    assert codes(loaded) == ["M108"]
    assert sorted(loaded.desired.catalogs) == ["lake", "pond"]


def test_depth_by_aliases(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 200)]
    assert codes(load_text(tmp_path, "\n".join(lines))) == ["M108"]


def test_too_many_values(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, "[" + "a," * (MAX_NODES + 1) + "]\n", CATALOG)
    assert codes(loaded) == ["M109"]
    assert "lake" in loaded.desired.catalogs


def test_wide_table_is_fine(tmp_path: Path) -> None:
    columns = "".join(f"- {{name: c{i}, type: int64, nullable: false}}\n" for i in range(10_000))
    loaded = load_text(tmp_path, CATALOG, table("t", "schema:\n" + columns))
    assert codes(loaded) == []
    assert len(loaded.desired.tables["lake"][("t",)].fields or ()) == 10_000


@pytest.mark.parametrize("tag", ["!!int", "!!binary", "!!python/object:os.system", "!custom", "!!map"])
def test_tags_are_refused(tmp_path: Path, tag: str) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", f"properties: {{a: {tag} x}}"))
    assert "M112" in codes(loaded)


def test_str_tag_makes_a_string(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", "properties: {a: !!str no, b: ! 1}"))
    assert codes(loaded) == []
    assert dict(loaded.desired.tables["lake"][("t",)].properties) == {"a": "no", "b": "1"}


@pytest.mark.parametrize(("key", "hint"), [("no", '"no"'), ("1", '"1"'), ("2024-01-01", '"2024-01-01"'), ("~", '"~"')])
def test_keys_are_strings(tmp_path: Path, key: str, hint: str) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", f"properties: {{{key}: x}}"))
    assert [(d.code, d.hint) for d in loaded.diagnostics] == [("M107", f"write {hint}")]


@pytest.mark.parametrize("key", ["[a]", "{a: b}", ""])
def test_odd_keys(tmp_path: Path, key: str) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", f"properties: {{? {key} : x}}"))) == ["M107"]


def test_first_document_may_be_indented(tmp_path: Path) -> None:
    text = "".join("  " + line + "\n" for line in (CATALOG + "metadata: {}").splitlines())
    assert places(load_text(tmp_path, text), "M106") == [(5, 3)]


def test_yaml_directive(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, "%YAML 1.1\n---\n" + CATALOG + "kind: Catalog\n")
    assert places(loaded, "M106") == [(7, 1)]


def test_many_directives_are_refused_unread(tmp_path: Path) -> None:
    assert codes(load_text(tmp_path, "".join(f"%TAG !a{i}! x\n" for i in range(50_000)))) == ["M115"]


def test_many_empty_documents(tmp_path: Path) -> None:
    assert codes(load_text(tmp_path, "---\n" * 50_000)) == ["M114"]


def test_problems_of_one_file_are_bounded(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, *["a: 1\n"] * 5000)
    assert len(loaded.diagnostics) == 101
    assert codes(loaded).count("M116") == 1


@pytest.mark.slow
def test_many_documents_in_megabytes(tmp_path: Path) -> None:
    many = [namespace(f"n{i}", f"properties: {{a: {'x' * 300}}}") for i in range(8000)]
    loaded = load_text(tmp_path, CATALOG, *many)
    assert (codes(loaded), loaded.documents) == ([], 8001)
