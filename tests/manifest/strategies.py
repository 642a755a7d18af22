# ruff: noqa: E501 - tables of cases read best one to a line
"""Generated documents that are valid, and small damages to them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from reconciler.manifest.schema_files import catalog_types, options_of
from reconciler.model.desired import ALLOW_WORDS

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,6}", fullmatch=True)
STRINGS = st.dictionaries(WORD, TEXT, max_size=3)
ID = st.lists(WORD, min_size=1, max_size=3)
TYPES = st.sampled_from(["int64", "string", "list<int8>", "struct<a: int8>", "nonsense <<", "timestamp[us, tz=UTC]"])
POSITIVE = st.integers(1, 1000)


def optional(required: dict[str, Any], more: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=more)


_FIELD: dict[str, Any] = {"nullable": st.booleans(), "comment": TEXT, "metadata": STRINGS, "renamedFrom": WORD}
LEAF = optional({"name": WORD, "type": TYPES}, _FIELD)
STRUCT = st.deferred(
    lambda: optional(
        {"name": WORD, "fields": st.lists(FIELD, min_size=1, max_size=2)},
        {
            **_FIELD,
            "type": st.sampled_from(["struct", "list", "large_list", "list<struct>", "map<string, struct not null>"]),
        },
    )
)
FIELD = LEAF | STRUCT
DEFAULTS: list[dict[str, Any]] = [
    {"default": TEXT | st.integers(-5, 5) | st.booleans() | st.floats(-5, 5)},
    {"backfill": st.fixed_dictionaries({"sql": WORD}) | st.fixed_dictionaries({"function": WORD})},
]
COLUMN = st.one_of(FIELD, *[optional({"name": WORD, "type": TYPES}, {**_FIELD, **d}) for d in DEFAULTS])

_FLAT: dict[str, Any] = {"metric": st.sampled_from(["l2", "cosine", "dot", "hamming"]), "num_partitions": POSITIVE}
_BITS: dict[str, Any] = {"num_bits": st.integers(1, 16)}
_HNSW: dict[str, Any] = {"m": POSITIVE, "ef_construction": POSITIVE, "max_level": st.integers(1, 64)}
_SUB: dict[str, Any] = {"num_sub_vectors": POSITIVE}
_INVERTED: dict[str, Any] = {"with_position": st.booleans(), "base_tokenizer": WORD, "language": WORD,
                             "max_token_length": POSITIVE, "stem": st.booleans(), "prefix_only": st.booleans()}  # fmt: skip
FAMILIES: list[tuple[list[str], dict[str, Any], dict[str, Any]]] = [
    (["btree", "bitmap", "label_list", "ngram", "zonemap", "bloomfilter"], {}, {}),
    (["inverted"], {}, _INVERTED),
    (["ivf_flat"], {}, _FLAT),
    (["ivf_sq", "ivf_rq"], {}, {**_FLAT, **_BITS}),
    (["ivf_pq"], _SUB, {**_FLAT, **_BITS}),
    (["ivf_hnsw_flat"], {}, {**_FLAT, **_HNSW}),
    (["ivf_hnsw_sq"], {}, {**_FLAT, **_HNSW, **_BITS}),
    (["ivf_hnsw_pq"], _SUB, {**_FLAT, **_HNSW, **_BITS}),
]


def _index(types: list[str], required: dict[str, Any], more: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    params = {"params": optional(required, more)}
    base: dict[str, Any] = {"column": WORD, "type": st.sampled_from(types)}
    return optional({**base, **params}, {"name": WORD}) if required else optional(base, {"name": WORD, **params})


INDEX = st.one_of([_index(*family) for family in FAMILIES])
_COMMON: dict[str, Any] = {
    "description": TEXT,
    "properties": STRINGS,
    "state": st.sampled_from(["present", "absent"]),
    "protect": st.booleans(),
    "renamedFrom": ID,
    "ignoreDifferences": st.lists(WORD, max_size=2),
    "allow": st.lists(st.sampled_from(ALLOW_WORDS), max_size=2),
    "waivers": st.lists(
        st.fixed_dictionaries(
            {
                "code": st.sampled_from(["P001", "P006", "P007"]),
                "reason": WORD,
                "until": st.sampled_from(["2027-01-31", "2027-02-31", "0000-99-99"]),
            }
        ),
        max_size=2,
    ),
}
_HEAD: dict[str, Any] = {"apiVersion": st.just("reconciler.lance/v1")}
_METADATA = st.fixed_dictionaries({"catalog": NAME, "id": ID})
NAMESPACE = optional(
    {**_HEAD, "kind": st.just("Namespace"), "metadata": _METADATA},
    {"spec": optional({}, _COMMON | {"level": st.sampled_from(["catalog", "database"])})},
)
_ROWS = st.integers(0, 10**15) | st.just(20.0)
AGE = st.from_regex(r"[1-9][0-9]{0,5}[smhdw]", fullmatch=True)
CHECKS = optional(
    {},
    {
        "rowCount": optional({}, {"min": _ROWS, "max": _ROWS}),
        "notNull": st.lists(WORD, max_size=2),
        "unique": st.lists(WORD | st.lists(WORD, min_size=1, max_size=2), max_size=2),
        "accepted": st.dictionaries(
            WORD,
            st.lists(TEXT | st.integers(-5, 5) | st.booleans() | st.floats(-5, 5), min_size=1, max_size=2),
            max_size=2,
        ),
        "expressions": st.lists(st.fixed_dictionaries({"name": WORD, "sql": WORD}), max_size=2),
        "freshness": st.fixed_dictionaries({"column": WORD, "maxAge": AGE}),
    },
)
_PATHS = WORD | st.lists(WORD, min_size=1, max_size=2)
_STORED: dict[str, Any] = {"storage.key": TEXT, "storage.": TEXT}
_SIGN = st.sampled_from([";", "\t", "ä", "\U0001f600"])
_OPTIONS = st.dictionaries(WORD, TEXT, max_size=2)
_FORMATS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("parquet", {"path": _PATHS}, _STORED),
    (
        "csv",
        {"path": _PATHS},
        {
            **_STORED,
            "delimiter": _SIGN,
            "header": st.booleans(),
            "quote": _SIGN,
            "nullValues": st.lists(TEXT, min_size=1, max_size=2),
        },
    ),
    ("json", {"path": _PATHS}, _STORED),
    ("lance", {"path": WORD}, {**_STORED, "version": POSITIVE | WORD | st.just(7.0)}),
    ("lance", {"table": _METADATA}, {"version": POSITIVE}),
    ("delta", {"path": WORD}, {**_STORED, "options": _OPTIONS}),
    ("iceberg", {"table": WORD}, {"options": _OPTIONS, "token": WORD}),
    ("iceberg", {"path": WORD}, {"token": WORD}),
    (
        "jdbc",
        {"url": st.sampled_from(["jdbc:x", "${env:URL}"]), "table": WORD},
        {"user": WORD, "password": WORD, "driver": WORD, "options": _OPTIONS, "token": WORD},
    ),
    ("jdbc", {"url": st.just("jdbc:x"), "query": WORD}, {}),
]
_VIEW = st.one_of([optional({"format": st.just(name), **needed}, more) for name, needed, more in _FORMATS])
_VIEWS = st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,4}", fullmatch=True), _VIEW, max_size=2)
_SQL = optional({"format": st.just("sql"), "sql": WORD}, {"views": _VIEWS, "token": WORD})
DATA = optional(
    {"source": _VIEW | _SQL, "mode": st.sampled_from(["once", "append", "replace-if-changed"])},
    {
        "partitions": st.integers(1, 100_000) | st.just(4.0),
        "orderBy": st.lists(WORD, min_size=1, max_size=2),
        "columns": st.dictionaries(WORD, WORD, max_size=2),
    },
)
MIGRATION = optional({"from": _METADATA}, {"verify": st.sampled_from(["checksum", "none"])})
_COUNT = st.integers(2, 2**31 - 1) | st.just(20.0)
MAINTENANCE = optional(
    {},
    {
        "compact": optional(
            {},
            {
                "targetRowsPerFragment": _COUNT,
                "minSmallFragments": _COUNT,
                "maxDeletedPercent": st.floats(0, 100) | st.integers(0, 100),
            },
        ),
        "indexes": optional({}, {"maxUnindexedRows": _ROWS}),
        "cleanup": optional({}, {"olderThan": AGE, "keepTagged": st.booleans(), "retainVersions": _COUNT}),
    },
).filter(bool)
TABLE_SPEC = optional(
    {},
    {
        **_COMMON,
        "location": WORD,
        "schema": st.lists(COLUMN, min_size=1, max_size=3),
        "schemaMode": st.sampled_from(["exact", "at_least"]),
        "schemaMetadata": STRINGS,
        "config": STRINGS,
        "indexes": st.lists(INDEX, max_size=2),
        "checks": CHECKS,
        "data": DATA,
        "migration": MIGRATION,
        "maintenance": MAINTENANCE,
    },
)
TABLE = st.fixed_dictionaries({**_HEAD, "kind": st.just("Table"), "metadata": _METADATA, "spec": TABLE_SPEC})
_FLAG = st.booleans() | st.just("${env:FLAG}")
_MANAGEMENT = optional(
    {},
    {
        "owner": WORD,
        "adopt": st.booleans(),
        "ignore": st.lists(WORD, max_size=2),
        "thresholds": optional(
            {}, {"deletes": st.integers(0, 99), "deletePercent": st.floats(0, 100) | st.integers(0, 100)}
        ),
        "indexRefresh": st.booleans()
        | st.just(0)
        | optional(
            {},
            {
                "maxRows": st.integers(0, 10**15),
                "maxUnindexed": st.integers(0, 99) | st.sampled_from(["0%", "5%", "0.25%", "100%"]),
            },
        ),
    },
)
_ADDRESS = st.sampled_from(["http://localhost:8181", "https://h/v", "${env:URL}", "${file:u}/x", "http://${env:HOST}"])


_SHARED = {"management": _MANAGEMENT, "requireEnvironment": st.just(False)}  # With it, documents need a `--env`.


def _value(rule: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A value that the rule of an option accepts, from the rule itself."""
    if "$ref" in rule:
        return _SHARED.get(rule["$ref"].rpartition("/")[2], _FLAG)
    if "const" in rule:
        return st.just(rule["const"])
    if isinstance(rule["type"], list):
        return st.integers(rule["minimum"], rule["maximum"]) | st.just(float(rule["maximum"])) | st.just("${env:N}")
    if "https?" in rule.get("pattern", ""):
        return _ADDRESS
    return st.just("/api") if "pattern" in rule else (WORD if rule.get("minLength") else TEXT)


def _consistent(spec: dict[str, Any]) -> dict[str, Any]:
    """Without keys that lack another one, or exclude one."""
    rule = options_of(spec["type"]) or {}
    if set(rule.get("not", {}).get("required", ["?"])) <= set(spec):
        del spec["auth_token"]
    while lacking := [
        k for k, needed in rule.get("dependentRequired", {}).items() if k in spec and set(needed) - set(spec)
    ]:
        del spec[lacking[0]]
    return spec


def _spec(type_: str) -> st.SearchStrategy[dict[str, Any]]:
    rule = options_of(type_)
    assert rule is not None
    named = {key: _value(value) for key, value in rule["properties"].items()}
    for pattern, value in rule["patternProperties"].items():
        prefix = pattern.removeprefix("^").replace("\\", "")
        named |= {f"{prefix}key": _value(value), prefix: _value(value)}
    required = {key: named.pop(key) for key in rule["required"]}
    return optional(required, named).map(_consistent)


OTHER = optional(
    {"type": st.sampled_from(["hive", "toy", "other", "Dir"])},
    {"x": WORD, "n": st.integers(0, 9), "management": _MANAGEMENT},
)
CATALOG = st.fixed_dictionaries(
    {
        **_HEAD,
        "kind": st.just("Catalog"),
        "metadata": st.fixed_dictionaries({"name": NAME}),
        "spec": st.one_of([*map(_spec, catalog_types()), OTHER]),
    }
)
_PATTERNS = st.dictionaries(WORD, WORD, min_size=1, max_size=2)
_KINDS = st.lists(st.sampled_from(["Namespace", "Table"]), min_size=1, max_size=2)
_RULES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("naming", {"namespace": WORD}, {"table": WORD}),
    ("naming", {"table": WORD}, {}),
    ("required-properties", {"properties": _PATTERNS}, {"kinds": _KINDS}),
    ("required-owner", {}, {"property": WORD, "pattern": WORD, "kinds": _KINDS}),
    ("location-prefix", {"prefixes": st.lists(st.sampled_from(["s3://a", "/a", "file:///"]), min_size=1)}, {}),
    ("column-limits", {"maxColumns": POSITIVE | st.just(20.0)}, {"maxDepth": POSITIVE, "name": WORD}),
    ("column-limits", {"maxDepth": POSITIVE}, {"name": WORD}),
    ("no-destructive-change", {}, {"risks": st.lists(st.sampled_from(["destructive", "rewrite"]), min_size=1)}),
    ("tagged-columns", {"columns": WORD, "require": st.fixed_dictionaries({"metadata": _PATTERNS})}, {}),
    (
        "tagged-columns",
        {"tagged": _PATTERNS, "require": st.fixed_dictionaries({"properties": _PATTERNS}, optional={"comment": WORD})},
        {"columns": WORD},
    ),
]
_REACH: dict[str, Any] = {
    "severity": st.sampled_from(["error", "warning", "off", False]),
    "match": st.lists(WORD, min_size=1, max_size=2),
    "catalogs": st.lists(NAME, min_size=1, max_size=2),
    "environments": st.lists(WORD, min_size=1, max_size=2),
}
RULE = st.one_of([optional({"rule": st.just(name), **needed}, {**more, **_REACH}) for name, needed, more in _RULES])
POLICY = st.fixed_dictionaries(
    {
        **_HEAD,
        "kind": st.just("Policy"),
        "metadata": st.fixed_dictionaries({"name": NAME}),
        "spec": optional(
            {"rules": st.lists(RULE, min_size=1, max_size=3)}, {"maxWaiverDays": POSITIVE | st.just(90.0)}
        ),
    }
)
DOCUMENT = st.one_of(CATALOG, CATALOG, NAMESPACE, TABLE, POLICY)

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([1.0, 2.5, -1.0, 1e9, 2**40, "", "x", "dir", "struct"]),
    st.sampled_from(["lake\n", "a\x07", "a" * 256, "ä", "${env:A}", "${env:A}\n", "${var:a}", "true", "http://x", "ftp://x", "5", "iceberg", "l2", "ivf_pq", "btree", "parquet", "csv", "jdbc", "sql", "jdbc:x\n", ";\n", "\n", "1d", "1d\n", "0d", "naming", "P001", "P999", "2027-01-31", "2027-01-31\n", "s3://x", "error"]),
    st.just([]), st.just({}), st.just({"a": "b"}), st.just(["x"]), st.just([None]), st.just({"": "x"}),
)  # fmt: skip
KEYS = st.sampled_from(["type", "fields", "default", "backfill", "params", "name", "spec", "extra", "storage.x", "storage",
                        "header.x", "tls.ca_file", "tls", "credential", "auth_token", "session_token", "access_key_id", "max_retries", "endpoint",
                        "assume_role_region", "read_timeout", "num_sub_vectors", "metric", "schema", "location", "management", "description", "checks", "rowCount", "min", "freshness", "maxAge", "data", "source", "format", "path", "table", "query", "token", "views", "sql", "function", "options", "password", "version", "migration", "from", "maintenance", "compact", "cleanup", "olderThan", "minSmallFragments", "maxDeletedPercent", "rule", "rules", "severity", "until", "waivers", "columns", "require", "tagged", "kinds", "risks", "prefixes", "maxDepth", ""])  # fmt: skip


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += _places(inner, (*path, number))
    return found


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A valid document with one to three values replaced, keys removed, or keys added. It may still be valid."""
    document = copy.deepcopy(draw(DOCUMENT))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_places(document)))
        if not path:
            continue
        parent: Any = document
        for part in path[:-1]:
            parent = parent[part]
        target = parent[path[-1]]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                parent[path[-1]] = copy.deepcopy(draw(ODD))
            case "remove":
                del parent[path[-1]]
            case _ if isinstance(target, dict):
                target[draw(KEYS)] = copy.deepcopy(draw(ODD))
            case _ if isinstance(target, list):
                target.append(copy.deepcopy(draw(ODD)))
    return document
