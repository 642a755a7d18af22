"""The SELECT of a data source, in Spark's SQL, read without running it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from reconciler.manifest.check_sql import DIALECT, wrong_with
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem

_HINT = "one SELECT; with WITH, UNION and the like if need be"
_ROWS = frozenset(
    [
        "range",
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
        "variant_explode",
        "variant_explode_outer",
        "sql_keywords",
        "collations",
    ]
)
"""Functions that give rows, and read nothing but their arguments."""
_BEYOND = {
    **dict.fromkeys(("reflect", "try_reflect", "java_method"), "calls Java"),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), "reads a file"),
    "identifier": "makes a name of a text",
}
"""Functions that reach for more than the values they are given, or hide what they reach for."""
_XSD = "rowvalidationxsdpath"
"""An option of `from_xml`: a file."""


def check_sql(source: Mapping[str, Any], path: Path, problems: list[Problem]) -> None:
    place: Path = (*path, "sql")
    tree, wrong = _parsed(source["sql"])
    if tree is None:
        problems.append(Problem("M475", place, wrong, _HINT))
        return
    views = source.get("views") or {}
    names = {name.lower(): name for name in views}
    for name in views:
        if names[name.lower()] != name:
            message = f"the view {names[name.lower()]!r} is the same name in Spark"
            problems.append(Problem("M476", (*path, "views", name), message, "rename one of them", at_key=True))
    used, dotted = _tables(tree)
    for message in [*_paths(dotted), *_functions(tree)]:
        problems.append(Problem("M476", place, message, "declare what it reads in `views`, or write it without"))
    for name in used:
        if name.lower() not in names:
            near = nearest(name, list(views))
            hint = f"did you mean {near}?" if near else "declare it in `views`, or write catalog.namespace.table"
            problems.append(Problem("M476", place, f"the SQL reads {name!r}, which is no view", hint))
    lower = {name.lower() for name in used}
    for name in views:
        if name.lower() not in lower:
            message = f"the view {name!r} is not in the SQL"
            problems.append(Problem("M476", (*path, "views", name), message, "remove it", at_key=True))


def _paths(dotted: list[str]) -> list[str]:
    """Spark takes csv.`/a/b` for files."""
    paths = [name for name in dotted if "/" in name or "\\" in name or ":" in name]
    return [f"the SQL reads files by their path: {name}" for name in paths]


def _functions(tree: Any) -> Iterator[str]:
    """What is wrong with the functions that are called."""
    from sqlglot import exp

    for node in tree.find_all(exp.Table, exp.Lateral):
        if isinstance(node.this, exp.Func) and _called(node.this) not in {*_ROWS, *_BEYOND}:
            yield f"the SQL reads from {_called(node.this)}(), which is no function that only makes rows"
    for call in tree.find_all(exp.Func):
        name = _called(call)
        if name in _BEYOND:
            yield f"the SQL calls {name}(), which {_BEYOND[name]}"
        elif name == "from_xml" and not _plain_options(call.expressions[2:]):
            yield "the SQL calls from_xml() with options that may name a file"


def _called(call: Any) -> str:
    from sqlglot import exp

    return str(call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()


def _plain_options(options: list[Any]) -> bool:
    from sqlglot import exp

    nodes = [node for option in options for node in option.walk()]
    known = all(isinstance(node, exp.Literal | exp.Array | exp.VarMap) for node in nodes)
    return known and all(node.name.lower() != _XSD for node in nodes)


def other_tables(source: Mapping[str, Any]) -> list[str]:
    """The dotted names: tables that Spark's own catalogs know."""
    tree, _ = _parsed(source["sql"])
    return [] if tree is None else _tables(tree)[1]


@lru_cache(maxsize=16)
def _parsed(sql: str) -> tuple[Any, str]:
    """The tree, or None and what is wrong."""
    import sqlglot
    from sqlglot import errors, exp

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # It warns of statements that we refuse.
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=DIALECT) if tree is not None]
    except (errors.ParseError, errors.TokenError, RecursionError) as error:
        return None, f"the SQL does not parse: {wrong_with(error)}"
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return None, "the SQL is no SELECT" if len(trees) == 1 else "the SQL is more than one statement, or none"
    writing = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.QueryTransform)
    if any(isinstance(node, writing) and not isinstance(node, exp.Query) for node in trees[0].walk()):
        return None, "the SQL does more than reading"
    return trees[0], ""


def _tables(tree: Any) -> tuple[list[str], list[str]]:
    """Plain names that are no WITH of the query, and dotted names; each once, in order. Functions such as `range(9)`
    are neither."""
    from sqlglot import exp

    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    plain: dict[str, None] = {}
    dotted: dict[str, None] = {}
    for table in tree.find_all(exp.Table):
        parts = [part.name for part in table.parts] if isinstance(table.this, exp.Identifier | exp.Dot) else []
        if len(parts) > 1:
            dotted[".".join(parts)] = None
        elif parts and parts[0].lower() not in own:
            plain[parts[0]] = None
    return list(plain), list(dotted)
