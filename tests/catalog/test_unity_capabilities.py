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


def test_what_cannot_be_done() -> None:
    marks = Marks("us")
    assert CAN.refuses(c.RenameTable(T, ("lake", "n", "old")))
    assert CAN.refuses(c.UpdateTable(T, {"a": "b"}, (), marks))
    assert CAN.refuses(c.SyncColumns(T, ()))
    assert CAN.refuses(c.RenameNamespace(("other", "n"), ("lake", "n")))
    assert CAN.refuses(c.RenameNamespace(("lake", "m"), ("lake", "n"))) is None
    assert CAN.refuses(c.UpdateTable(T, {}, (), marks)) is None
    assert CAN.refuses(c.ReplaceTable(T, {"a": "b"}, (), marks)) is None
    assert CAN.schema_problem([Field("x" * 256, parse_type("int8"))])
    assert CAN.schema_problem([Field("x" * 255, parse_type("int8"))]) is None
