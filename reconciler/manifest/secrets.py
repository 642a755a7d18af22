"""Connection options and data sources, resolved as late as possible, with the values that no output may ever show."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.core.secret_names import CREDENTIAL, client_id
from reconciler.manifest.limits import SQL_CODE, UNLIMITED, Limits
from reconciler.manifest.problem import ManifestError, Path, Problem
from reconciler.manifest.resolved_options import check_resolved, empty_parts
from reconciler.manifest.schema_files import is_secret, is_secret_of_source, secret_keys
from reconciler.manifest.variables import Expanded, Resolver

_HARMLESS = frozenset({"true", "false"})
_SHORTEST = 4


def connection_options(
    spec_options: Mapping[str, object],
    schema: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    limits: Limits = UNLIMITED,
) -> tuple[dict[str, str], frozenset[str]]:
    """Option strings, and the set of secret values for redaction. `schema` is that of the type's keys.

    Secret is every value of a key that the schema marks `x-secret`, the client id in `credential` included, and each
    `${env:}` or `${file:}` value in it; without a schema, of a key that any built-in type marks. `true`, `false` and
    values of fewer than four characters are left out of the set: hiding those everywhere would hide nothing and break
    the output. Raises ManifestError with everything that is wrong, which names keys but never a value.
    """
    secret = secret_keys(schema) if schema is not None else is_secret
    resolver = Resolver({}, environ, limits=limits)
    options: dict[str, str] = {}
    secrets: set[str] = set()
    problems: list[Problem] = []
    for key, written in spec_options.items():
        if not isinstance(written, str):
            options[key] = _text(written)
            if secret(key):
                secrets.add(options[key])
            continue
        expanded = resolver.expand(written)
        empty = empty_parts(("spec", key), expanded)
        problems += [*_problems(("spec", key), expanded), *empty]
        options[key] = expanded.text
        if secret(key):
            secrets.update((*_parts(expanded.text), *expanded.used))
        if key == CREDENTIAL:
            secrets.update(client_id(options))
        if schema is not None and "${" in written and not expanded.troubles and not empty:
            try:
                check_resolved(key, expanded.text, schema)
            except ManifestError as error:
                problems.append(Problem(error.code, ("spec", key), error.message, error.hint))
    _raise_if_any(problems)
    return options, _worth_hiding(secrets)


def resolved_source(
    source: Mapping[str, Any], environ: Mapping[str, str] | None = None, limits: Limits = UNLIMITED
) -> tuple[dict[str, Any], frozenset[str]]:
    """A data source as it is read, and the set of secret values for redaction: what `${env:}` and `${file:}` stand for
    in keys that the schema marks `x-secret`. What is written out there is no secret, or `validate` refuses it. SQL is
    judged once more as it will run: a saved plan was not validated. Raises ManifestError, which names the key but never
    a value."""
    resolver = Resolver({}, environ, limits=limits)
    secrets: set[str] = set()
    problems: list[Problem] = []

    def resolve(value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, Mapping):
            return {key: resolve(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [resolve(inner, (*path, number)) for number, inner in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        expanded = resolver.expand(value)
        problems.extend(_problems(("spec", "data", "source", *path), expanded))
        if is_secret_of_source(path):
            secrets.update((*(_parts(expanded.text) if expanded.used else ()), *expanded.used))
        return expanded.text

    resolved = resolve(source, ())
    _raise_if_any(problems)
    if resolved.get("format") == "sql" and SQL_CODE not in limits.permitted:
        from reconciler.manifest.source_sql import code_in

        _raise_if_any(code_in(resolved["sql"], ("spec", "data", "source", "sql")))
    return resolved, _worth_hiding(secrets)


def _problems(path: Path, expanded: Expanded) -> list[Problem]:
    where = ".".join(map(str, path))
    return [Problem(t.code, path, f"`{where}`: {t.message}", t.hint, offset=t.offset) for t in expanded.troubles]


def _raise_if_any(problems: Sequence[Problem]) -> None:
    if problems:
        first = problems[0]
        raise ManifestError(first.code, first.message, first.hint, tuple(problems))


def _worth_hiding(secrets: set[str]) -> frozenset[str]:
    return frozenset(s for s in secrets if len(s) >= _SHORTEST and s.lower() not in _HARMLESS)


def _parts(text: str) -> tuple[str, ...]:
    """The whole, and what is sent of it on its own: the secret of `client_id:secret`, the token of `Bearer token`, the
    user and password of `Basic base64`, which a service decodes."""
    return (text, text.partition(":")[2], *text.split(" ")[1:], *_of_basic(text))


def _of_basic(text: str) -> tuple[str, ...]:
    scheme, _, coded = text.strip().partition(" ")
    if scheme.lower() != "basic":
        return ()
    with contextlib.suppress(ValueError):
        user, colon, password = base64.b64decode(coded.strip(), validate=True).decode().partition(":")
        return (f"{user}{colon}{password}", password)
    return ()


def _text(value: object) -> str:
    """Booleans and whole numbers as YAML writes them: 20.0 is 20. What else a plug-in allows comes as JSON."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
