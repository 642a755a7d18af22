"""The offline rules of Unity are the server's: what they let pass it takes, what it refuses they refuse."""

from __future__ import annotations

import os
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from servers.unity_checks import Refused, check_name, check_stored, stored_location

from reconciler.catalog.locations import same_location
from reconciler.catalog.unity_capabilities import unity_capabilities, wire_location
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.capabilities import is_container
from reconciler.model.state import Marks

CAN = unity_capabilities({"catalog": "lake", "root": "/data"})
T = ("lake", "n", "t")
NAMES = st.text(st.sampled_from(string.ascii_letters + string.digits + "_@-. /$%\x1füé'\""), max_size=6)
PARTS = st.sampled_from(["a", "b.lance", "ü", "sp ace", "sp%20ace", "..", ".", "", "x#y", "q?", "100%", "a:b"])
SCHEMES = st.sampled_from(["/", "file:///", "file:/", "file://h/", "s3://b/", "S3://b/", "s3a://b/", "gs://b/", "az://b/",
                           "abfss://c@acc.dfs.core.windows.net/", "hdfs://h/", "memory://", "", "./"])  # fmt: skip
LOCATIONS = st.builds(
    lambda s, p, end: s + "/".join(p) + end, SCHEMES, st.lists(PARTS, max_size=3), st.sampled_from(["", "/"])
)


@given(NAMES)
@example("x" * 255)
@example("x" * 256)
def test_names_are_the_servers(name: str) -> None:
    try:
        check_name(name)
        taken = True
    except Refused:
        taken = False
    assert (CAN.ident_problem("Namespace", ("lake", name)) is None) == taken
    assert (CAN.ident_problem("Table", ("lake", "n", name)) is None) == taken


def test_depth_and_catalog() -> None:
    assert CAN.ident_problem("Namespace", ("lake", "n")) is None
    assert CAN.ident_problem("Table", T) is None
    assert is_container(CAN.ident_problem, ("lake",))
    for kind, ident in (("Namespace", ()), ("Namespace", T), ("Table", ("lake", "n")), ("Table", (*T, "x"))):
        assert CAN.ident_problem(kind, ident), ident  # type: ignore[arg-type]
    assert "configured catalog 'lake'" in str(CAN.ident_problem("Table", ("other", "n", "t")))
    unknown = unity_capabilities({"catalog": "${env:CATALOG}", "root": "${env:ROOT}"})
    assert unknown.ident_problem("Table", ("other", "n", "t")) is None
    assert unknown.location_of(T) is None


@given(LOCATIONS)
def test_a_location_that_passes_is_stored_as_the_same_place(location: str) -> None:
    if CAN.location_problem(T, location) is None:
        stored = stored_location(wire_location(location), "/somewhere/else")
        assert same_location(stored, location)
        assert stored == wire_location(location)


@pytest.mark.parametrize(
    "location",
    ["s3://b", "s3://b/", "S3://b/p", "s3a://b/p", "gcs://b/p", "az://c/p", "hdfs://h/p", "memory://x/y",
     "relative/path", "name", "/", "//x", "s3://b/x#y", "s3://b/a//b",
     "s3://b/a/../b", "file:///data/sp ace", "s3://key:secret@b/p", "file://host/p"],
)  # fmt: skip
def test_locations_that_are_refused(location: str) -> None:
    assert CAN.location_problem(T, location)


@pytest.mark.parametrize("location", ["/data/x y", "file:///data/x", "s3://b/p/", "gs://b/p", "${var:place}/x"])
def test_locations_that_may_be_chosen(location: str) -> None:
    assert CAN.location_problem(T, location) is None


def test_the_place_by_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unity_capabilities({"root": "s3://b/lake/"}).location_of(T) == "s3://b/lake/lake/n/t"
    assert unity_capabilities({"root": "/a b"}).location_of(T) == "file:///a%20b/lake/n/t"
    monkeypatch.chdir(tmp_path)
    here = f"file://{os.getcwd()}"
    assert unity_capabilities({"root": "./x"}).location_of(T) == f"{here}/x/lake/n/t"
    assert unity_capabilities({}).location_of(T) == f"{here}/lake/n/t"


@pytest.mark.parametrize("root", ["s3a://b/p", "memory://x/y", "s3://b/a//b"])
def test_a_root_that_no_table_could_have(root: str) -> None:
    can = unity_capabilities({"catalog": "lake", "root": root})
    assert str(can.ident_problem("Table", T)).startswith("spec.root: ")
    assert can.ident_problem("Namespace", ("lake", "n")) is None


@pytest.mark.parametrize(("key", "value"), [("k", "v" * 255), ("k" * 255, "v"), ("k", "")])
def test_properties_up_to_the_limit(key: str, value: str) -> None:
    check_stored("x", {key: value}, None, 255, "")
    assert CAN.property_problem("Table", key, value) is None


def test_properties_beyond_the_limit() -> None:
    for key, value in (("k", "v" * 256), ("k" * 256, "v")):
        assert CAN.property_problem("Namespace", key, value)
        with pytest.raises(Refused):
            check_stored("x", {key: value}, None, 255, "")
    assert CAN.property_problem("Table", "table_type", "delta")
    assert CAN.property_problem("Namespace", "table_type", "delta") is None
    assert CAN.property_problem("Namespace", "description", "d" * 256)
    assert CAN.property_problem("Table", "description", "d" * 256) is None
    assert CAN.property_problem("Table", "description", "")


EMOJI = "\N{GRINNING FACE}"
"""One character, and two UTF-16 units: the server's database counts those."""
FITS = [("v" * 255, True), ("v" * 256, False), ("ü" * 255, True), (EMOJI * 127, True), (EMOJI * 127 + "v", True),
        (EMOJI * 128, False), (EMOJI * 255, False)]  # fmt: skip


def taken(properties: dict[str, str], comment: str | None = None, limit: int = 255) -> bool:
    try:
        check_stored("x", properties, comment, limit, "")
    except Refused:
        return False
    return True


@pytest.mark.parametrize(("text", "fits"), FITS)
def test_lengths_are_the_servers(text: str, fits: bool) -> None:
    assert taken({"k": text}) == taken({text: "v"}) == taken({}, text) == fits
    for kind in ("Namespace", "Table"):
        assert (CAN.property_problem(kind, "k", text) is None) == fits  # type: ignore[arg-type]
        assert (CAN.property_problem(kind, text, "v") is None) == fits  # type: ignore[arg-type]
    assert (CAN.property_problem("Namespace", "description", text) is None) == fits
    assert (CAN.schema_problem([Field(text, parse_type("int8"))]) is None) == fits
    assert (CAN.owner_problem(text) is None) == fits


@pytest.mark.parametrize("text", ["c" * 65535, EMOJI * 32767])
def test_long_comments(text: str) -> None:
    for comment, fits in ((text, True), (text + EMOJI, False)):
        assert taken({}, comment, 65535) == fits
        assert (CAN.property_problem("Table", "description", comment) is None) == fits
        fields = [Field("id", parse_type("int8")), Field("v", parse_type("int8"), comment=comment)]
        assert (CAN.schema_problem(fields) is None) == fits
    assert "which are 65536 UTF-16 units, Unity holds 65535" in str(
        CAN.property_problem("Table", "description", EMOJI * 32768)
    )


def test_long_locations() -> None:
    """As the server stores them: a path is a URI there, and one of its characters up to twelve."""
    for start, one in (("s3://b/", "x"), ("/", "x"), ("/", "ü"), ("s3://b/", EMOJI)):
        size = len(wire_location(start + one).encode("utf-16-le")) // 2
        unit = len(wire_location(start + one * 2).encode("utf-16-le")) // 2 - size
        most = (2048 - size) // unit + 1
        assert CAN.location_problem(T, start + one * most) is None
        assert "2048" in str(CAN.location_problem(T, start + one * (most + 1)))
    deep = unity_capabilities({"catalog": "lake", "root": "s3://b/" + "x" * 1800})
    assert deep.refuses(c.DeclareTable(T, {}, Marks("us"))) is None
    far = c.DeclareTable(("lake", "n" * 200, "t" * 200), {}, Marks("us"))
    assert "2048" in str(deep.refuses(far))
    assert deep.refuses(c.DeclareTable(far.ident, {}, Marks("us"), "s3://b/x")) is None


def test_what_cannot_be_done() -> None:
    marks = Marks("us")
    assert CAN.refuses(c.RenameTable(T, ("lake", "other", "t")))
    assert CAN.refuses(c.RenameTable(T, ("lake", "n", "old"))) is None
    assert CAN.refuses(c.UpdateTable(T, {"a": "b"}, (), marks))
    assert CAN.refuses(c.SyncColumns(T, ()))
    assert CAN.refuses(c.RenameNamespace(("other", "n"), ("lake", "n")))
    assert CAN.refuses(c.RenameNamespace(("lake", "m"), ("lake", "n"))) is None
    assert CAN.refuses(c.UpdateTable(T, {}, (), marks)) is None
    assert CAN.refuses(c.ReplaceTable(T, {"a": "b"}, (), marks)) is None
    assert CAN.schema_problem([Field("x" * 256, parse_type("int8"))])
    assert CAN.schema_problem([Field("x" * 255, parse_type("int8"))]) is None
