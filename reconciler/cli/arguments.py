"""The command line: commands and flags. Imports nothing but argparse: --help stays instant."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from reconciler import __version__
from reconciler.cli.argument_parser import Parser
from reconciler.model.spark import RUNNERS

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing, pathlib and contextlib cost more than the rest of --help together.
    from typing import Any

ALLOW_WORDS = (
    "drop_column", "narrow_type", "set_not_null", "drop_index", "replace_table", "drop_namespace", "purge_data",
    "mix_rows", "skip_files", "add_files", "recreate",
)  # fmt: skip

DOCUMENTS = ("markdown", "sarif", "junit")
"""Formats that others take in: there is one whatever happens, also when there is no plan."""
PLAN_DOCUMENTS = (*DOCUMENTS, "html")


def parser() -> Parser:
    text = "Keeps Lance namespaces and tables equal to YAML manifests."
    top = Parser(prog="reconciler", **_described("", text))
    top.add_argument("--version", action="version", version=f"reconciler {__version__}")
    _add_common(top, top=True)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, module: str = "") -> Parser:
        """`module` of this package runs it; by default the one of its name."""
        made = commands.add_parser(name, help=text, **_described(name, text))
        made.set_defaults(module=module or name)
        _add_common(made)
        return made

    validate = command("validate", "check manifests, offline")
    _add_paths(validate)
    _add_format(validate, *DOCUMENTS)
    _add_variables(validate)
    _add_changed(validate)
    validate.add_argument("--no-resolve", action="store_true", help="read no ${env:NAME} and no ${file:PATH}")
    plan = command("plan", "show what apply would do")
    _add_paths(plan)
    _add_planning(plan)
    _add_format(plan, *PLAN_DOCUMENTS)
    plan.add_argument("-o", "--output", metavar="FILE", help="save the plan for `apply --plan`")
    _add_timeout(plan)
    _add_spark(plan)
    _add_runner(plan)
    plan.add_argument("--detailed-exitcode", action="store_true", help="exit 2 when there is any step")
    apply = command("apply", "plan and apply, or apply a saved plan")
    _add_paths(apply, "*")
    _add_planning(apply)
    _add_format(apply, "markdown", "junit")
    _add_running(apply)
    _add_metrics(apply)
    _add_spark(apply)
    _add_runner(apply)
    drift = command("drift", "compare live catalogs with manifests; exit 2 when they differ")
    _add_paths(drift)
    _add_scope(drift)
    drift.add_argument("--max-unindexed", type=_limit, metavar="ROWS",
                       help="exit 2 too when a declared index leaves more rows unindexed; or a share: 5%%")  # fmt: skip
    _add_changed(drift)
    _add_timeout(drift)
    _add_metrics(drift)
    _add_spark(drift)
    _add_format(drift, *PLAN_DOCUMENTS)
    status = command("status", "what is ours, what differs, who applied last; writes nothing")
    _add_paths(status)
    _add_scope(status)
    _add_timeout(status)
    _add_spark(status)
    status.add_argument("--format", choices=["text", "json", "markdown"], default="text", help="default: text")
    importing = command("import", "write live state as manifests; exit 5 when not all of it could be read", "import_")
    _add_paths(importing, metavar="CATALOG.yaml")
    _add_import(importing)
    _add_timeout(importing)
    unlock = command("unlock", "show who holds the lease of a catalog, and take it away")
    _add_paths(unlock)
    unlock.add_argument("--catalog", action="append", default=[], metavar="NAME", help="only this catalog")
    unlock.add_argument("--yes", action="store_true", help="take it away, do not ask")
    _add_variables(unlock)
    _add_format(unlock)
    show = command("show", "render a saved plan, a report or a journal")
    show.add_argument("file", metavar="FILE")
    _add_format(show, *PLAN_DOCUMENTS)
    _add_graph(command("graph", "draw the steps of a saved plan, or manifests; offline"))
    explain = command("explain", "what a code or a word of ours means, with an example and the fix")
    explain.add_argument("code", nargs="*", metavar="CODE", help="M203, P001, NamespaceNotEmpty, adopt, `exit 3`, …")
    explain.add_argument(
        "--report", metavar="FILE", help="CODE is a step of this report or journal: how to take it back"
    )
    explain.add_argument("--format", choices=["text", "json", "markdown"], default="text", help="default: text")
    completion = command("completion", "print a script that completes command lines in a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish")
    verbs = command("pipeline", "work with the data of tables, on Spark").add_subparsers(
        dest="verb", required=True, metavar="VERB"
    )
    text = "check the rows of declared tables; exit 2 when a check fails"
    verify = verbs.add_parser("verify", help=text, **_described("pipeline verify", text))
    _add_common(verify)
    _add_verify(verify)
    for name, text in DATA_VERBS.items():
        verb = verbs.add_parser(name, help=text, **_described(f"pipeline {name}", text))
        _add_common(verb)
        _add_data_steps(verb)
    text = "compact declared tables, refresh their indexes, remove old versions; only past their thresholds"
    maintain = verbs.add_parser("maintain", help=text, **_described("pipeline maintain", text))
    _add_common(maintain)
    _add_maintain(maintain)
    text = "record what is in the catalogs; with --diff exit 2 when they differ from the manifests"
    inventory = verbs.add_parser("inventory", help=text, **_described("pipeline inventory", text))
    _add_common(inventory)
    _add_inventory(inventory)
    return top


def _described(name: str, text: str) -> dict[str, Any]:
    """The help of a command ends with examples."""
    from reconciler.cli.help_examples import epilog

    raw = argparse.RawDescriptionHelpFormatter
    return {"description": text, "epilog": epilog(name), "formatter_class": raw, "allow_abbrev": False}


def _add_import(to: Parser) -> None:
    to.add_argument("-o", "--output", metavar="DIR", required=True, help="where the files go, or are already")
    _add_scope(to)
    to.add_argument("--split", choices=["namespace", "table"], default="namespace",
                    help="a file for each of these (default: namespace)")  # fmt: skip
    to.add_argument("--only-unmanaged", action="store_true", help="only what has no owner and is not declared")
    to.add_argument("--dry-run", action="store_true", help="show what would change in the files; write nothing")


DATA_VERBS = {
    "materialize": "fill declared tables from their sources: those steps of the plan, and no others",
    "evolve": "fill new columns, write columns anew in another type: those steps of the plan, and no others",
    "migrate": "move tables that have a `migration`: those steps of the plan, and no others",
}


def _add_graph(to: Parser) -> None:
    _add_paths(to, "*")
    to.add_argument("--plan", metavar="FILE", help="the steps of this saved plan, and what each needs")
    _add_scope(to)
    to.add_argument("--format", choices=["dot", "mermaid", "svg"], default="dot", help="default: dot")


def _add_data_steps(to: Parser) -> None:
    _add_paths(to)
    _add_scope(to)
    _add_allow(to)
    _add_spark(to)
    _add_runner(to)
    to.add_argument("--dry-run", action="store_true", help="show the steps; start no Spark, write nothing")
    to.add_argument("--report", metavar="FILE", help="write the report here, whatever happens")
    _add_lock(to)
    _add_format(to)


def _add_inventory(to: Parser) -> None:
    _add_paths(to)
    _add_scope(to)
    to.add_argument("--history", metavar="URI", default=".reconciler/inventory.lance",
                    help="the Lance table that the rows are appended to (default: %(default)s)")  # fmt: skip
    to.add_argument("--history-option", action="append", default=[], type=_variable, metavar="KEY=VALUE",
                    help="storage option of the history; the value may be ${env:NAME} or ${file:PATH}")  # fmt: skip
    to.add_argument("--diff", action="store_true", help="compare with the manifests, as `plan` does")
    to.add_argument("--report", metavar="FILE.html", help="write a page about all runs of the history")
    _add_spark(to)
    to.add_argument("--dry-run", action="store_true", help="list the catalogs; start no Spark, write nothing")
    _add_format(to)
    to.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of to stdout")


def _add_verify(to: Parser) -> None:
    _add_paths(to)
    _add_scope(to)
    to.add_argument("--against", metavar="CATALOG:ID", help="this table has the same rows as the one selected")
    _add_spark(to)
    to.add_argument("--dry-run", action="store_true", help="show what would be checked; start no Spark")
    to.add_argument("--format", choices=["text", "json", "junit"], default="text", help="default: text")
    to.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of to stdout")


def _add_maintain(to: Parser) -> None:
    _add_paths(to)
    _add_scope(to)
    _add_spark(to)
    to.add_argument("--dry-run", action="store_true", help="show what would be done, and why; start no Spark")
    _add_lock(to)
    _add_format(to)
    to.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of to stdout")


def _add_spark(to: Parser) -> None:
    where = to.add_mutually_exclusive_group()
    where.add_argument("--master", metavar="URL", help="Spark's master (default: local[*,4])")
    where.add_argument("--remote", metavar="URL", help="a Spark Connect server: sc://HOST[:PORT]")
    to.add_argument("--conf", action="append", default=[], type=_variable, metavar="KEY=VALUE", help="for Spark")


def _add_runner(to: Parser) -> None:
    to.add_argument("--runner", choices=["auto", *RUNNERS], default="auto",
                    help="of steps that move data; auto: columns of small tables (management.inProcess) are written "
                    "by this process, all else by Spark (default: auto)")  # fmt: skip


def _add_common(to: Parser, top: bool = False) -> None:
    """Accepted before and after the command."""
    nothing = argparse.SUPPRESS
    to.add_argument("--debug", action="store_true", default=False if top else nothing, help="show tracebacks")
    to.add_argument(
        "--log-level",
        choices=["debug", "info", "warning", "error"],
        default="warning" if top else nothing,
        help="how much to log to stderr (default: warning)",
    )
    to.add_argument("--color", choices=["auto", "always", "never"], default="auto" if top else nothing,
                    help="auto: on a terminal, unless NO_COLOR is set (default: auto)")  # fmt: skip

    to.add_argument(
        "--log-format",
        choices=["text", "json"],
        default="text" if top else nothing,
        help="stderr for people, or one JSON object a line (default: text)",
    )


def _add_metrics(to: Parser) -> None:
    to.add_argument("--metrics-file", metavar="FILE", help="write Prometheus text here, whatever happens")
    to.add_argument("--metrics-label", action="append", default=[], type=_variable, metavar="NAME=VALUE",
                    help="tells its series from those of another job")  # fmt: skip


def _add_paths(to: Parser, nargs: str = "+", metavar: str = "PATH") -> None:
    to.add_argument("paths", nargs=nargs, metavar=metavar, help="manifest files and folders")


def _add_format(to: Parser, *more: str) -> None:
    to.add_argument("--format", choices=["text", "json", *more], default="text", help="default: text")


def _add_variables(to: Parser) -> None:
    to.add_argument("--var", action="append", default=[], type=_variable, metavar="NAME=VALUE", help="for ${var:NAME}")
    to.add_argument("--env", type=_not_empty, metavar="NAME", help="with the changes in overlays/NAME/ of the folders")
    to.add_argument("--catalogs-from", action="append", default=[], type=_not_empty, metavar="DIR",
                    help="take Catalog documents from here only, and do not trust PATH with secrets")  # fmt: skip
    to.add_argument("--env-allow", action="append", default=[], type=_not_empty, metavar="PREFIX",
                    help="${env:NAME} only for names that begin so")  # fmt: skip
    to.add_argument("--file-root", action="append", default=[], type=_not_empty, metavar="DIR",
                    help="${file:PATH} only below this folder")  # fmt: skip
    to.add_argument("--allow-sql-code", action="store_true",
                    help="SQL of sources may call Java and read files: only for manifests that you trust")  # fmt: skip
    to.add_argument("--strict", action="store_true", help="warnings about manifests are errors")


def _add_changed(to: Parser) -> None:
    to.add_argument("--changed-since", type=_not_empty, metavar="GIT_REF",
                    help="only documents that changed in git since then, and what depends on them")  # fmt: skip


def _add_scope(to: Parser) -> None:
    to.add_argument("--target", action="append", default=[], metavar="GLOB", help="only these identifiers (`a.**`)")
    to.add_argument("--catalog", action="append", default=[], metavar="NAME", help="only this catalog")
    _add_variables(to)


def _add_planning(to: Parser) -> None:
    to.add_argument(
        "--prune",
        action="store_true",
        help="delete what we own and no manifest declares; refused while management.owner is not set",
    )
    to.add_argument("--adopt", action="store_true", help="take declared objects that nobody owns")
    to.add_argument("--take-over", action="append", default=[], metavar="OWNER", help="take this owner's objects")
    _add_allow(to)
    _add_scope(to)
    _add_changed(to)


def _add_allow(to: Parser) -> None:
    to.add_argument("--allow", action="append", default=[], choices=ALLOW_WORDS, metavar="WORD",
                    help=f"one of {', '.join(ALLOW_WORDS)}")  # fmt: skip


def _add_running(to: Parser) -> None:
    to.add_argument("--plan", metavar="FILE", help="apply exactly this saved plan")
    to.add_argument("--reviewed", metavar="FILE", help="do nothing that is not in this saved plan; exit 4 otherwise")
    to.add_argument("--yes", action="store_true", help="do not ask")
    to.add_argument("--report", metavar="FILE", help="write the report here, whatever happens")
    to.add_argument("--journal", metavar="FILE", help="default: .reconciler/journal/…")
    to.add_argument("--parallelism", type=_positive(int), default=8, metavar="N", help="steps at a time (default: 8)")
    to.add_argument("--timeout", type=_positive(float), metavar="SECONDS",
                    help="plan within this time, and start no further step after it")  # fmt: skip
    _add_lock(to)


def _add_timeout(to: Parser) -> None:
    to.add_argument("--timeout", type=_positive(float), metavar="SECONDS",
                    help="end with an error when catalogs and sources have not answered by then")  # fmt: skip


def _add_lock(to: Parser) -> None:
    to.add_argument("--lock-timeout", type=_positive(float, zero=True), metavar="SECONDS",
                    help="how long to wait for another run that writes (default: 75; 0: do not wait)")  # fmt: skip


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _limit(text: str) -> Any:
    from reconciler.model.coverage import parse_limit

    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _not_empty(text: str) -> str:
    """An empty variable of a script must not mean that the flag was not given."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _positive(kind: type[int] | type[float], zero: bool = False) -> Callable[[str], int | float]:
    def convert(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = -1
        if 0 < value < 1e9 or (zero and value == 0):
            return value
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number{' or 0' if zero else ''}")

    return convert
