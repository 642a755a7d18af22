"""How a command line is read, and what is said of a wrong one. Imports nothing but argparse: --help stays instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs more than the rest of --help together.
    from typing import Any, NoReturn

ERROR = 1


def _flag_name(word: str) -> str:
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _unknown_names(words: Sequence[str]) -> Iterator[str]:
    """Without values, which may be secret: what follows a flag that nobody knows is most likely its value."""
    is_value = False
    for word in words:
        is_flag = word.startswith("-")
        if is_flag or not is_value:
            yield _flag_name(word) if is_flag else word
        is_value = is_flag and "=" not in word


class Parser(argparse.ArgumentParser):
    """A wrong command line is bad input, exit code 1: 2 means that changes are pending."""

    def error(self, message: str) -> NoReturn:
        from reconciler.render.safe_text import safe_line

        message = safe_line(message)
        self.exit(ERROR, f"{self.prog}: error: {message}\nrun `{self.prog} --help` for what it takes, with examples\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Every flag that is not known, each with the one that may have been meant."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._chosen(found)
            names = [*_unknown_names(unknown)]
            parser.error("; ".join(f"{_shown(name)} is not known here{parser._near(name)}" for name in names))
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A flag that is not known before the command is told as such: its value would be taken for the command."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                words = sys.argv[1:] if args is None else list(args)
                unknown = self._unknown_before(words)
                if unknown is not None:
                    self.error(f"{_shown(unknown)} is not known here{_later(unknown, action) or self._near(unknown)}")
        return super().parse_known_args(args, namespace)

    def _unknown_before(self, words: list[str]) -> str | None:
        """The first flag in front of the command that is none of this parser's."""
        rest = iter(words)
        for word in rest:
            if not word.startswith("-") or word in ("-", "--"):
                return None
            name, equals, _ = word.partition("=")
            known = self._option_string_actions.get(name) or self._option_string_actions.get(name[:2])
            if known is None:
                return name
            if known.nargs is None and not equals:
                next(rest, None)
        return None

    def _chosen(self, found: argparse.Namespace) -> Parser:
        """The parser of the command, or of the verb, that was given."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                inner = action.choices.get(str(getattr(found, action.dest, "")))
                return inner._chosen(found) if inner is not None else self
        return self

    def _near(self, word: str) -> str:
        from reconciler.cli.suggest import did_you_mean

        return did_you_mean(word, self._option_string_actions) if word.startswith("-") else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from reconciler.cli.suggest import did_you_mean

        known = list(action.choices)
        raise argparse.ArgumentError(
            action, f"{_shown(value)} is not one of {', '.join(known)}{did_you_mean(str(value), known)}"
        )


def _later(flag: str, commands: argparse._SubParsersAction[Any]) -> str:
    known = any(flag in inner._option_string_actions for inner in commands.choices.values())
    return f"; it goes after the {str(commands.metavar).lower()}" if known else ""


def _shown(word: object) -> str:
    return ascii(word)
