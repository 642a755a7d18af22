"""What is refused before anything is sent, and where tables go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.catalog.iceberg_capabilities import IcebergCapabilities, iceberg_capabilities
from reconciler.catalog.locations import RESERVED, Places, lance_uri
from reconciler.model.capabilities import is_container
from reconciler.model.change import RenameNamespace, RenameTable

CAPABILITIES = IcebergCapabilities("/root")


@pytest.mark.parametrize("name", ["with space", "日本語", "it's", "a?b&c=d", "a+b", "[x]{y}", "a$b",
                                  "UPPER", "select", "x" * 255, "__manifest", "-dash", "a;b", "~", "a|b"])  # fmt: skip
def test_names_that_are_kept(name: str) -> None:
    assert CAPABILITIES.ident_problem("Table", ("wh", name, name)) is None
    assert CAPABILITIES.ident_problem("Namespace", ("wh", name)) is None


def test_a_table_may_have_dots_and_a_namespace_may_not() -> None:
    assert CAPABILITIES.ident_problem("Table", ("my.wh", "n", "with.dots")) is None
    for kind, ident in (("Namespace", ("wh", "with.dots")), ("Table", ("wh", "with.dots", "t"))):
        assert "must not contain a dot" in (CAPABILITIES.ident_problem(kind, ident) or "")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a\\b", "100%", "a\tb", "a\x1fb", "a\x00b", "\x7f",
                                  "#hash", "a@b", "a:b", "x" * 256, "\ud800"])  # fmt: skip
def test_names_that_no_address_can_hold(name: str) -> None:
    assert CAPABILITIES.ident_problem("Table", ("wh", "n", name))
    assert CAPABILITIES.ident_problem("Table", ("wh", name, "t"))
    assert CAPABILITIES.ident_problem("Namespace", ("wh", "n", name))


def test_the_warehouse_is_there_and_cannot_be_declared() -> None:
    assert "warehouse" in (CAPABILITIES.ident_problem("Namespace", ("wh",)) or "")
    assert CAPABILITIES.ident_problem("Namespace", ())
    assert is_container(CAPABILITIES.ident_problem, ("wh",))
    assert not is_container(CAPABILITIES.ident_problem, ("wh", "n"))
    assert CAPABILITIES.ident_problem("Namespace", ("s3://bucket/wh", "n")) is None
    for ident in [("t",), ("wh", "t")]:
        assert "at least three names" in (CAPABILITIES.ident_problem("Table", ident) or "")


@pytest.mark.parametrize(
    ("root", "place"),
    [
        ("s3://bucket/lake/", "s3://bucket/lake/wh/a/b/t"),
        ("/data/", "/data/wh/a/b/t"),
        ("./lake", f"{os.getcwd()}/lake/wh/a/b/t"),
        (None, f"{os.getcwd()}/wh/a/b/t"),
        ("${env:ROOT}", None),
    ],
)
def test_where_a_table_goes(root: str | None, place: str | None) -> None:
    capabilities = iceberg_capabilities({"endpoint": "http://x"} | ({"root": root} if root else {}))
    assert capabilities.location_of(("wh", "a", "b", "t")) == place


@given(st.lists(st.text(min_size=1), min_size=3, max_size=4), st.lists(st.text(min_size=1), min_size=3, max_size=4))
def test_no_two_tables_share_a_folder(one: list[str], two: list[str]) -> None:
    places = [CAPABILITIES.location_of(tuple(i)) for i in (one, two)]
    assert (places[0] == places[1]) == (one == two)
    for place, ident in zip(places, (one, two), strict=True):
        assert place is not None
        parts = place.split("/")[2:]
        assert len(parts) == len(ident)
        assert all(p not in (".", "..") and len(p.encode(errors="surrogatepass")) <= 255 for p in parts)
        assert os.path.normpath(place) == place
        assert not set(place) & set("%?# ")


def test_a_long_name_still_has_a_folder(tmp_path: Path) -> None:
    place = IcebergCapabilities(str(tmp_path)).location_of(("wh", "ü" * 255, "日" * 255))
    assert place is not None
    Path(place).mkdir(parents=True)


@pytest.mark.parametrize("location", ["here/t", "./t", "s3://user:secret@bucket/t"])
def test_a_location_that_cannot_be_chosen(location: str) -> None:
    problem = CAPABILITIES.location_problem(("wh", "n", "t"), location)
    assert problem
    assert "secret" not in problem


@pytest.mark.parametrize("location", ["/data/t", "s3://bucket/t", "file:///data/t", "${env:PLACE}/t"])
def test_a_location_that_can_be_chosen(location: str) -> None:
    assert CAPABILITIES.location_problem(("wh", "n", "t"), location) is None


@pytest.mark.parametrize("key", ["table_type", "lance.location", "nessie.commit.id", "format-version", "uuid", ""])
def test_properties_that_are_not_the_users(key: str) -> None:
    assert CAPABILITIES.property_problem("Table", key, "x")


def test_properties_that_are() -> None:
    assert CAPABILITIES.property_problem("Table", "write.parquet.compression-codec", "zstd") is None
    assert CAPABILITIES.property_problem("Namespace", "location", "s3://x") is None
    assert CAPABILITIES.property_problem("Namespace", "table_type", "x") is None


def test_what_the_protocol_cannot_do() -> None:
    assert "cannot rename a namespace" in (CAPABILITIES.refuses(RenameNamespace(("wh", "b"), ("wh", "a"))) or "")
    assert "another warehouse" in (CAPABILITIES.refuses(RenameTable(("w2", "n", "t"), ("w1", "n", "t"))) or "")
    assert CAPABILITIES.refuses(RenameTable(("wh", "m", "t"), ("wh", "n", "t"))) is None


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("file:///lake#1/t", "/lake#1/t"),
        ("file:///lake?x=1/t/", "/lake?x=1/t"),
        ("file:/lake#1/../t", "/t"),
        ("FILE:///lake/t", "/lake/t"),
        ("File://localhost/lake%20one/t", "/lake one/t"),
        ("/lake#1?/t", "/lake#1?/t"),
        ("S3A://b/x#1/", "s3://b/x#1"),
    ],
)
def test_one_text_for_one_place(location: str, place: str) -> None:
    assert lance_uri(location) == place


@pytest.mark.parametrize("name", ["lake#1", "lake?1", "lake"])
@pytest.mark.parametrize("scheme", ["file://", "FILE://"])
def test_a_root_with_any_character_is_where_the_tables_are(tmp_path: Path, scheme: str, name: str) -> None:
    location = iceberg_capabilities({"root": f"{scheme}{tmp_path}/{name}"}).location_of(("wh", "n", "t"))
    assert location is not None
    assert Places({}).reserve(location)
    assert [p.relative_to(tmp_path) for p in tmp_path.rglob(RESERVED)] == [Path(name, "wh", "n", "t", RESERVED)]
