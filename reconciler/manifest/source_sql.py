"""The SELECT of a data source, in Spark's SQL, read without running it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from reconciler.manifest.check_sql import DIALECT, wrong_with
from reconciler.manifest.limits import SQL_CODE
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.spark_functions import BUILT_IN

_WITHOUT = "declare what it reads in `views`, or write it without; --allow-sql-code permits it to those you trust"
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
    **dict.fromkeys(("from_protobuf", "to_protobuf", "from_avro", "to_avro", "schema_of_avro"), "may read a file"),
    "identifier": "makes a name of a text",
}
"""Functions that reach for more than the values they are given, or hide what they reach for."""
_XML = {"from_xml": 2, "schema_of_xml": 1}
"""With how many arguments before the options."""
_READING = frozenset({"read_csv", "read_parquet"})
"""What sqlglot knows of other engines."""
_XSD = "rowvalidationxsdpath"
"""An option of the functions for XML: a file."""
_OWN = frozenset({"builtin", "system.builtin"})
"""Where the functions of Spark are."""
_FORMATS = "avro binaryfile csv delta hudi iceberg jdbc json kafka orc parquet rate socket text xml"
_FILES = frozenset(_FORMATS.split())
"""Spark can take `csv.name` for a file."""
_PLAIN = re.compile(r"[\w-]+")
_LEXEMES = re.compile(
    r"""(?P<line>--(?:\\\n|[^\r\n])*)
    |(?P<hint>/\*\+(?:(?!\*/).)*(?:\*/)?)
    |(?P<block>/\*(?:(?!\*/).)*(?:\*/)?)
    |\br'[^']*'|\br"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`
    |\w+|.""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""As Spark reads SQL. Two quotes beside each other are two texts here, which makes no difference."""


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
    used, _ = _tables(tree)
    for problem in code_in(source["sql"], place):
        problems.append(problem)
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


def code_in(sql: str, place: Path) -> list[Problem]:
    """Where it does more than compute with the rows of tables: it runs with the rights of the driver, whose files and
    environment it could put into a table. A list of what Spark has, and not of what is known to be bad."""
    tree, wrong = _parsed(sql)
    if tree is None:
        return [Problem(SQL_CODE, place, wrong, _HINT)]
    _, dotted = _tables(tree)
    found = dict.fromkeys([*_comments(sql), *_substituted(tree), *_paths(dotted), *_functions(tree)])
    return [Problem(SQL_CODE, place, message, _WITHOUT) for message in found]


def _comments(sql: str) -> Iterator[str]:
    """Comments that end at one place for Spark and at another one for the parser here, which then would not see what is
    run: Spark goes on after a backslash at the end of a line, and has rules of its own for a comment in a comment."""
    for found in _LEXEMES.finditer(sql):
        text = found[0]
        match found.lastgroup:
            case "line" if "\\\n" in text:
                yield "the SQL has a comment with a backslash at the end of its line: to Spark it goes on in the next"
            case "block" if "/*" in text[2:] or len(text) < 4 or not text.endswith("*/"):
                yield "the SQL has a comment in a comment, or one that is not closed"
            case "hint" if any(mark in text[3:] for mark in ("/*", "--", "'", '"', "`")) or not text.endswith("*/"):
                yield "the SQL has a comment or a text in a hint, or a hint that is not closed"


def _substituted(tree: Any) -> Iterator[str]:
    """Spark puts variables of the environment and of Java in the place of `${env:NAME}`."""
    from sqlglot import exp

    if any(isinstance(node, exp.Parameter | exp.Placeholder) for node in tree.walk()):
        yield "the SQL has a parameter, and nothing gives it a value"
    if any("${" in node.name for node in tree.find_all(exp.Literal, exp.Identifier)):
        yield "the SQL has a text or a name with `${`, in whose place Spark puts variables"


def _paths(dotted: list[tuple[str, ...]]) -> Iterator[str]:
    """Spark takes csv.`/a/b` and text.`b` for files."""
    for parts in dotted:
        if not all(map(_PLAIN.fullmatch, parts)) or (len(parts) == 2 and parts[0].lower() in _FILES):
            yield f"the SQL reads files by their path: {'.'.join(parts)}"


def _functions(tree: Any) -> Iterator[str]:
    """What is wrong with the functions that are called."""
    from sqlglot import exp

    told: set[str] = set()
    for node in tree.find_all(exp.Table, exp.Lateral):
        name, space = _called_for_rows(node)
        if name and (name not in {*_ROWS, *_BEYOND} or (space and space not in _OWN)):
            told.add(name)
            yield f"the SQL reads from {name}(), which is no function that only makes rows"
    for call in tree.find_all(exp.Func):
        name, before = _called(call), _space(call)
        if name in told:
            continue
        if name in _BEYOND:
            yield f"the SQL calls {name}(), which {_BEYOND[name]}"
        elif before is not None and before not in _OWN:
            yield f"the SQL calls {before}.{name}(), which is no function of Spark's own"
        elif isinstance(call, exp.Anonymous) and name not in BUILT_IN and name not in _ROWS:
            yield f"the SQL calls {name}(), which is no function of Spark's own"
        elif name in _READING:
            yield f"the SQL calls {name}(), which reads a file"
        elif name in _XML and not _plain_options(call.expressions[_XML[name] :]):
            yield f"the SQL calls {name}() with options that may name a file"


def _called_for_rows(node: Any) -> tuple[str, str]:
    """The function that a table is the result of, if any, and what comes before its name."""
    from sqlglot import exp

    alias = node.args.get("alias")
    unnamed = alias is not None and alias.args.get("columns") and alias.this is None
    if unnamed and isinstance(node.this, exp.Identifier):  # `a.b.f("x")` reads as a name and its columns.
        return node.this.name.lower(), ""
    if not isinstance(node.this, exp.Func | exp.Dot):
        return "", ""
    space = ".".join(node.text(part) for part in ("catalog", "db") if node.text(part))
    return _called(node.this), space.lower()


def _space(call: Any) -> str | None:
    """What comes before a name with dots: `a.b` of `a.b.f()`."""
    from sqlglot import exp

    parts: list[str] = []
    node = call
    while isinstance(node.parent, exp.Dot) and node.parent.expression is node:
        left = node.parent.this
        parts.insert(0, ".".join(part.name for part in (left.flatten() if isinstance(left, exp.Dot) else [left])))
        node = node.parent
    return ".".join(parts).lower() or None


def _called(call: Any) -> str:
    from sqlglot import exp

    while isinstance(call, exp.Dot):
        call = call.expression
    return str(call.name if isinstance(call, exp.Anonymous | exp.Identifier) else call.sql_name()).lower()


def _plain_options(options: list[Any]) -> bool:
    from sqlglot import exp

    nodes = [node for option in options for node in option.walk()]
    known = all(isinstance(node, exp.Literal | exp.Array | exp.VarMap) for node in nodes)
    return known and all(node.name.lower() != _XSD for node in nodes)


def other_tables(source: Mapping[str, Any]) -> list[str]:
    """The dotted names: tables that Spark's own catalogs know."""
    tree, _ = _parsed(source["sql"])
    return [] if tree is None else [".".join(parts) for parts in _tables(tree)[1]]


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


def _tables(tree: Any) -> tuple[list[str], list[tuple[str, ...]]]:
    """Plain names that are no WITH of the query, and dotted names; each once, in order. Functions such as `range(9)`
    are neither."""
    from sqlglot import exp

    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    plain: dict[str, None] = {}
    dotted: dict[tuple[str, ...], None] = {}
    for table in tree.find_all(exp.Table):
        parts = [part.name for part in table.parts] if isinstance(table.this, exp.Identifier | exp.Dot) else []
        if len(parts) > 1:
            dotted[tuple(parts)] = None
        elif parts and parts[0].lower() not in own:
            plain[parts[0]] = None
    return list(plain), list(dotted)
