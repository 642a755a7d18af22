"""The command line: commands and flags. Imports nothing but argparse: --help stays instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from reconciler import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing, pathlib and contextlib cost more than the rest of --help together.
    from typing import NoReturn

ERROR = 1
ALLOW_WORDS = (
    "drop_column", "narrow_type", "set_not_null", "drop_index", "replace_table", "drop_namespace", "purge_data",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A wrong command line is bad input, exit code 1: 2 means that changes are pending."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: error: {message}\n")


def parser() -> Parser:
    top = Parser(
        prog="reconciler", description="Keeps Lance namespaces and tables equal to YAML manifests.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"reconciler {__version__}")
    _add_common(top, top=True)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, module: str = "") -> Parser:
        """`module` of this package runs it; by default the one of its name."""
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        made.set_defaults(module=module or name)
        _add_common(made)
        return made

    validate = command("validate", "check manifests, offline")
    _add_paths(validate)
    _add_format(validate)
    _add_variables(validate)
    plan = command("plan", "show what apply would do")
    _add_paths(plan)
    _add_planning(plan)
    _add_format(plan)
    plan.add_argument("-o", "--output", metavar="FILE", help="save the plan for `apply --plan`")
    _add_spark(plan)
    plan.add_argument("--detailed-exitcode", action="store_true", help="exit 2 when there is any step")
    apply = command("apply", "plan and apply, or apply a saved plan")
    _add_paths(apply, "*")
    _add_planning(apply)
    _add_format(apply)
    _add_running(apply)
    _add_spark(apply)
    drift = command("drift", "compare live catalogs with manifests; exit 2 when they differ")
    _add_paths(drift)
    _add_scope(drift)
    _add_spark(drift)
    _add_format(drift)
    status = command("status", "what is ours, what differs, who applied last; writes nothing")
    _add_paths(status)
    _add_scope(status)
    _add_spark(status)
    status.add_argument("--format", choices=["text", "json", "markdown"], default="text", help="default: text")
    importing = command("import", "write live state as manifests", "import_")
    _add_paths(importing, metavar="CATALOG.yaml")
    _add_import(importing)
    show = command("show", "render a saved plan or report")
    show.add_argument("file", metavar="FILE")
    _add_format(show)
    verbs = command("pipeline", "work with the data of tables, on Spark").add_subparsers(
        dest="verb", required=True, metavar="VERB"
    )
    text = "check the rows of declared tables; exit 2 when a check fails"
    verify = verbs.add_parser("verify", help=text, description=text, allow_abbrev=False)
    _add_common(verify)
    _add_verify(verify)
    for name, text in DATA_VERBS.items():
        verb = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        _add_common(verb)
        _add_data_steps(verb)
    text = "compact declared tables, refresh their indexes, remove old versions; only past their thresholds"
    maintain = verbs.add_parser("maintain", help=text, description=text, allow_abbrev=False)
    _add_common(maintain)
    _add_maintain(maintain)
    text = "record what is in the catalogs; with --diff exit 2 when they differ from the manifests"
    inventory = verbs.add_parser("inventory", help=text, description=text, allow_abbrev=False)
    _add_common(inventory)
    _add_inventory(inventory)
    return top


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


def _add_data_steps(to: Parser) -> None:
    _add_paths(to)
    _add_scope(to)
    _add_allow(to)
    _add_spark(to)
    to.add_argument("--dry-run", action="store_true", help="show the steps; start no Spark, write nothing")
    to.add_argument("--report", metavar="FILE", help="write the report here, whatever happens")
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
    _add_format(to)
    to.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of to stdout")


def _add_spark(to: Parser) -> None:
    where = to.add_mutually_exclusive_group()
    where.add_argument("--master", metavar="URL", help="Spark's master (default: local[*,4])")
    where.add_argument("--remote", metavar="URL", help="a Spark Connect server: sc://HOST[:PORT]")
    to.add_argument("--conf", action="append", default=[], type=_variable, metavar="KEY=VALUE", help="for Spark")


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


def _add_paths(to: Parser, nargs: str = "+", metavar: str = "PATH") -> None:
    to.add_argument("paths", nargs=nargs, metavar=metavar, help="manifest files and folders")


def _add_format(to: Parser) -> None:
    to.add_argument("--format", choices=["text", "json"], default="text", help="default: text")


def _add_variables(to: Parser) -> None:
    to.add_argument("--var", action="append", default=[], type=_variable, metavar="NAME=VALUE", help="for ${var:NAME}")


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


def _add_allow(to: Parser) -> None:
    to.add_argument("--allow", action="append", default=[], choices=ALLOW_WORDS, metavar="WORD",
                    help=f"one of {', '.join(ALLOW_WORDS)}")  # fmt: skip


def _add_running(to: Parser) -> None:
    to.add_argument("--plan", metavar="FILE", help="apply exactly this saved plan")
    to.add_argument("--yes", action="store_true", help="do not ask")
    to.add_argument("--report", metavar="FILE", help="write the report here, whatever happens")
    to.add_argument("--journal", metavar="FILE", help="default: .reconciler/journal/…")
    to.add_argument("--parallelism", type=_positive(int), default=8, metavar="N", help="steps at a time (default: 8)")
    to.add_argument("--timeout", type=_positive(float), metavar="SECONDS", help="start no further step after this")


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _positive(kind: type[int] | type[float]) -> Callable[[str], int | float]:
    def convert(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if 0 < value < 1e9:
            return value
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")

    return convert
