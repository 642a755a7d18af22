# ruff: noqa: E501 - tables of cases read best one to a line
"""The published JSON Schema, as jsonschema_rs and as jsonschema read it, and the pydantic model are one contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from jsonschema import Draft202012Validator, ValidationError
from pydantic import TypeAdapter
from pydantic import ValidationError as Refused

from reconciler.manifest.catalog_documents import BUILT_IN
from reconciler.manifest.documents import AnyDocument
from reconciler.manifest.schema_check import accepts, explain
from reconciler.manifest.schema_files import catalog_types, is_secret, options_of, schema
from reconciler.manifest.yaml_careful import Careful
from reconciler.model.desired import NOT_OPTIONS

from .strategies import DOCUMENT, damaged

MODEL: TypeAdapter[Any] = TypeAdapter(AnyDocument)


def _pattern(validator: Any, pattern: str, instance: object, _: object) -> Iterator[ValidationError]:
    """JSON Schema means ECMA regular expressions, where `$` is the very end; Python's `$` allows a line end before it."""
    if isinstance(instance, str) and not re.search(pattern.replace("$", r"\Z").replace(r"\\Z", r"\$"), instance):
        yield ValidationError("pattern")


_ECMA = jsonschema.validators.extend(Draft202012Validator, {"pattern": _pattern})
PYTHON = _ECMA(schema("manifest"))


def model_accepts(document: object) -> bool:
    try:
        MODEL.validate_python(document)
    except Refused:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema("manifest"))


@settings(max_examples=80)
@given(DOCUMENT)
def test_valid_documents_are_accepted_by_all(document: Any) -> None:
    assert accepts(document)
    assert model_accepts(document)
    assert PYTHON.is_valid(document)


@settings(max_examples=80)
@given(damaged())
@example(
    {
        "apiVersion": "reconciler.lance/v1",
        "kind": "Catalog",
        "metadata": {"name": "a\n"},
        "spec": {"type": "dir", "path": "x"},
    }
)
@example(
    {"apiVersion": "reconciler.lance/v1", "kind": "Namespace", "metadata": {"catalog": "a", "id": ["b"]}, "spec": None}
)
@example([])
@example(None)
@example("x")
def test_damaged_documents_are_judged_alike(document: Any) -> None:
    verdict = accepts(document)
    assert model_accepts(document) is verdict
    assert PYTHON.is_valid(document) is verdict
    if not verdict:
        assert list(explain(document, Careful())), "a refusal is always explained"


@pytest.mark.slow
@settings(max_examples=500)
@given(damaged())
def test_damaged_documents_are_judged_alike_often(document: Any) -> None:
    verdict = accepts(document)
    assert model_accepts(document) is verdict
    assert PYTHON.is_valid(document) is verdict


def test_secret_keys_come_from_the_schema() -> None:
    assert is_secret("storage.aws_secret_access_key")
    assert not is_secret("path")
    assert not is_secret("storage")
    assert catalog_types() == ("dir", "rest", "iceberg", "unity", "glue") == BUILT_IN


SECRET = {
    "dir": {"storage.x"},
    "rest": {"api_key", "auth_token", "credential", "header.x", "storage.x"},
    "iceberg": {"auth_token", "credential", "header.x", "storage.x"},
    "unity": {"auth_token", "storage.x"},
    "glue": {"access_key_id", "secret_access_key", "session_token", "assume_role_external_id", "storage.x"},
}


@pytest.mark.parametrize("type_", catalog_types())
def test_which_keys_are_secret(type_: str) -> None:
    options = options_of(type_)
    assert options is not None
    keys = {*options["properties"], "storage.x", "header.x", "tls.x"}
    assert {k for k in keys if is_secret(k, type_)} == SECRET[type_]
    assert not is_secret("header.x", "glue"), "another type's secret is an unknown key there"


@pytest.mark.parametrize("type_", catalog_types())
def test_every_key_is_described(type_: str) -> None:
    """README tables and editors are made of it."""
    options = options_of(type_)
    assert options is not None
    for key, rule in {**options["properties"], **options["patternProperties"]}.items():
        assert key in NOT_OPTIONS or rule["description"].endswith("."), key
        if isinstance(rule.get("type"), list):
            assert rule["minimum"] <= rule["default"] <= rule["maximum"]


def test_error_in_a_catalog_is_reported_where_it_is() -> None:
    document = {
        "apiVersion": "reconciler.lance/v1",
        "kind": "Catalog",
        "metadata": {"name": "a"},
        "spec": {"type": "dir"},
    }
    (problem,) = explain(document, Careful())  # type: ignore[arg-type]
    assert (problem.code, problem.path) == ("M204", ("spec",))
    assert "'path'" in problem.message
