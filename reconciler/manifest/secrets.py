"""Connection options, resolved as late as possible, with the values that no output may ever show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.manifest.problem import ManifestError
from reconciler.manifest.schema_files import is_secret
from reconciler.manifest.variables import Resolver

_HARMLESS = frozenset({"true", "false"})
_SHORTEST = 4


def connection_options(
    spec_options: Mapping[str, object],
    secret_keys: Callable[[str], bool] | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], frozenset[str]]:
    """Option strings, and the set of secret values for redaction.

    Secret is every value of a key that the schema marks `x-secret`, and each `${env:}` or `${file:}` value in it.
    `true`, `false` and values of fewer than four characters are left out of the set: hiding those everywhere would
    hide nothing and break the output. Raises ManifestError, which names the key but never a value.
    """
    secret = secret_keys or is_secret
    resolver = Resolver({}, environ)
    options: dict[str, str] = {}
    secrets: set[str] = set()
    for key, written in spec_options.items():
        if isinstance(written, bool):
            options[key] = "true" if written else "false"
            continue
        expanded = resolver.expand(str(written))
        if expanded.troubles:
            first = expanded.troubles[0]
            raise ManifestError(first.code, f"`spec.{key}`: {first.message}", first.hint)
        options[key] = expanded.text
        if secret(key):
            secrets.update((expanded.text, *expanded.used))
    return options, frozenset(s for s in secrets if len(s) >= _SHORTEST and s.lower() not in _HARMLESS)
