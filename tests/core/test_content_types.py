"""Which columns of two tables have different types of values; by the same rules as the checksum."""

from __future__ import annotations

import itertools

import pytest

from reconciler.catalog.arrow_convert import from_arrow_type, to_arrow_type
from reconciler.core.content_types import content_differences, content_type
from reconciler.model.arrow import Field, parse_type
from reconciler.pipeline.checksum import spelled

GROUPS = [
    ["string", "large_string", "dictionary<int8, string>", "dictionary<int32, large_string>"],
    ["binary", "large_binary"],
    ["fixed_size_binary[4]"],
    ["fixed_size_binary[5]"],
    *([name] for name in ("null", "bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")),
    *([name] for name in ("float16", "float32", "float64", "date32", "date64")),
    *([f"timestamp[{unit}]"] for unit in ("s", "ms", "us", "ns")),
    *([f"timestamp[us, tz={zone}]"] for zone in ("UTC", "Europe/Berlin", "+00:00")),
    *([f"duration[{unit}]"] for unit in ("s", "us")),
    *([name] for name in ("time32[s]", "time32[ms]", "time64[us]", "time64[ns]")),
    *([f"decimal{name}"] for name in ("128(10, 2)", "128(10, 4)", "128(12, 2)", "256(10, 2)")),
    ["list<int8>", "large_list<int8>", "list<int8 not null>", "list<dictionary<int16, int8>>"],
    ["list<uint8>"],
    ["fixed_size_list<float32>[2]", "fixed_size_list<float32 not null>[2]"],
    ["fixed_size_list<float32>[3]"],
    ["fixed_size_list<float16>[2]"],
    ["struct<a: int8, b: string>", "struct<b: large_string, a: int8>", "struct<a: int8 not null, b: string>"],
    ["struct<a: int8, c: string>"],
    ["struct<a: uint8, b: string>"],
    ["struct<a: int8>"],
    ["list<struct<a: timestamp[s]>>"],
    ["list<struct<a: timestamp[us]>>"],
    ["map<string, int8>", "map<large_string, int8 not null>"],
    ["map<string, uint8>"],
    ["map<binary, int8>"],
]


def test_what_is_one_type() -> None:
    """Each group for itself, here and in the checksum."""
    assert all(from_arrow_type(to_arrow_type(parse_type(text))) == parse_type(text) for g in GROUPS for text in g)
    for one, other in itertools.product(range(len(GROUPS)), repeat=2):
        for a, b in itertools.product(GROUPS[one], GROUPS[other]):
            first, second = parse_type(a), parse_type(b)
            assert (content_type(first) == content_type(second)) is (one == other), (a, b)
            assert (spelled(to_arrow_type(first)) == spelled(to_arrow_type(second))) is (one == other), (a, b)


def test_a_blob_is_what_it_holds() -> None:
    assert content_type(parse_type("blob")) == content_type(parse_type("binary"))


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        ({"a": "int8", "b": "string"}, {"b": "large_string", "a": "int8"}, []),
        ({"at": "timestamp[s]"}, {"at": "timestamp[us]"}, ["column at is timestamp[s] here, timestamp[us] there"]),
        ({"a": "int8", "b": "int8"}, {"b": "int8", "c": "int8"}, ["column a is only here", "column c is only there"]),
    ],
)
def test_what_is_told(here: dict[str, str], there: dict[str, str], told: list[str]) -> None:
    one, other = ([Field(n, parse_type(t)) for n, t in fields.items()] for fields in (here, there))
    assert content_differences(tuple(one), tuple(other)) == told


def test_what_a_column_is_beside_its_type_does_not_count_but_an_extension_does() -> None:
    type_ = parse_type("fixed_size_binary[16]")
    plain = Field("id", type_)
    noted = Field("id", type_, nullable=False, comment="key", metadata={"unit": "m"})
    uuid = Field("id", type_, metadata={"ARROW:extension:name": "arrow.uuid"})
    assert content_differences((plain,), (noted,)) == []
    assert content_differences((plain,), (uuid,)) == [
        "column id is fixed_size_binary[16] here, fixed_size_binary[16] (arrow.uuid) there"
    ]
