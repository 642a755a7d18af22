"""pyarrow prints some types in its own way; what it prints is read."""

from __future__ import annotations

import pytest

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.model.arrow import SCALARS, TypeSyntaxError, parse_type


@pytest.mark.parametrize("name", sorted(SCALARS - {"blob"}))
def test_what_pyarrow_prints(name: str) -> None:
    type_ = parse_type(name)
    assert parse_type(str(to_arrow_type(type_))) == type_
    assert str(type_) == name
    nested = parse_type(f"list<{name}>")
    assert parse_type(str(to_arrow_type(nested))) == nested


@pytest.mark.parametrize("text", ["date32[ms]", "date64[day]", "date32[]", "date32[day", "date32[days]", "int8[day]"])
def test_other_units_are_not(text: str) -> None:
    with pytest.raises(TypeSyntaxError):
        parse_type(text)
