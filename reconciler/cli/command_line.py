"""The command line as others may see it, in the lease that this run holds."""

from __future__ import annotations

import argparse
import shlex

from reconciler.cli.argument_parser import Parser
from reconciler.model.public_url import public_url


def told_command(top: Parser, args: argparse.Namespace) -> str:
    """The command, the paths and the names of flags. Made of what was understood and not of the words that were typed:
    no value of a flag (a token in an address, a variable) can be in it."""
    verbs = [str(word) for name in ("command", "verb") if (word := getattr(args, name, None))]
    paths = [_path(str(path)) for path in getattr(args, "paths", ())]
    return shlex.join([top.prog, *verbs, *paths, *_flags(top, args)])


def _flags(top: Parser, args: argparse.Namespace) -> list[str]:
    """Those that say something else than what holds without them."""
    defaults = {action.dest: action.default for action in top._actions}
    given: dict[str, None] = {}
    for action in (*top._chosen(args)._actions, *top._actions):
        default = defaults.get(action.dest) if action.default == argparse.SUPPRESS else action.default
        if action.option_strings and getattr(args, action.dest, default) != default:
            given.setdefault(action.option_strings[-1])
    return list(given)


def _path(path: str) -> str:
    return (public_url(path) or "...") if "://" in path else path
