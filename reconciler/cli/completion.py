"""`reconciler completion SHELL`: a script that completes commands, flags and their values, made from the parser itself.

It is static: pressing TAB starts no Python. Values without a list of choices complete as file names.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.cli.arguments import parser
from reconciler.cli.exits import OK
from reconciler.cli.output import Output


@dataclass(frozen=True)
class Flag:
    names: tuple[str, ...]
    help: str
    value: bool
    choices: tuple[str, ...]
    file: bool
    repeats: bool


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    """`()` for the program itself, `("pipeline", "verify")` for a verb."""
    flags: tuple[Flag, ...]
    inner: tuple[tuple[str, str], ...]
    """Commands below it, with their help."""
    choices: tuple[str, ...]
    """What its argument can be, when that is not a file."""


def run(args: argparse.Namespace, out: Output) -> int:
    made = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell]
    out.result(made(list(commands(parser()))))
    return OK


def commands(of: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    inner: list[tuple[str, str]] = []
    below: list[Command] = []
    choices: tuple[str, ...] = ()
    flags = []
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            inner = [(str(a.dest), str(a.help)) for a in action._choices_actions]
            for name, parser_ in action.choices.items():
                below += commands(parser_, (*words, name))
        elif action.option_strings:
            flags.append(_flag(action))
        elif action.choices is not None:
            choices = tuple(action.choices)
    yield Command(words, tuple(flags), tuple(inner), choices)
    yield from below


def _flag(action: argparse.Action) -> Flag:
    value = action.nargs != 0
    known = action.choices or getattr(action, "known", None) or ()
    text = (
        "" if action.help in (None, argparse.SUPPRESS) else str(action.help).replace("%(default)s", str(action.default))
    )
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    file = value and metavar.partition(".")[0] in ("FILE", "DIR", "PATH")
    return Flag(tuple(action.option_strings), text, value, tuple(known), file, isinstance(action.default, list))


def _quoted(text: str) -> str:
    """For a shell, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def bash(all_: list[Command]) -> str:
    """Finds the command among the words before the cursor, then offers its flags, its commands or files."""
    return "\n".join([
        "# Completion of reconciler for bash. Load it with: source <(reconciler completion bash)",
        "_reconciler() {",
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at='' i",
        "  local flags='' words='' values='' takes=''",
        "  if [ \"$cur\" = '=' ]; then cur=''",
        "  elif [ \"$prev\" = '=' ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi",
        "  COMPREPLY=()",
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        "    case \"$at|${COMP_WORDS[i]}\" in",
        *(f"      {_quoted(' '.join(c.words[:-1]) + '|' + c.words[-1])}) at={_quoted(' '.join(c.words))} ;;"
          for c in all_ if c.words),
        "    esac",
        "  done",
        "  case \"$at|$prev\" in",
        *(line for c in all_ for flag in c.flags if flag.value for line in _bash_values(c, flag)),
        "  esac",
        "  case $at in",
        *(line for c in all_ for line in _bash_words(c)),
        "  esac",
        "  if [ -n \"$takes\" ]; then",
        "    [ -n \"$values\" ] && COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))",
        "  elif [[ $cur == -* ]]; then",
        "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))",
        "  elif [ -n \"$words\" ]; then",
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))",
        "  fi",
        "}",
        "complete -o default -F _reconciler reconciler",
        "",
    ])  # fmt: skip


def _bash_values(command: Command, flag: Flag) -> Iterator[str]:
    choices = _quoted(" ".join(flag.choices))
    for name in flag.names:
        yield f"    {_quoted(' '.join(command.words) + '|' + name)}) takes=1 values={choices} ;;"


def _bash_words(command: Command) -> Iterator[str]:
    flags = " ".join(name for flag in command.flags for name in flag.names)
    words = " ".join([*(name for name, _ in command.inner), *command.choices])
    yield f"    {_quoted(' '.join(command.words))})"
    yield f"      flags={_quoted(flags)}"
    yield f"      words={_quoted(words)} ;;"


def zsh(all_: list[Command]) -> str:
    """One function per command, each a call of zsh's own `_arguments`."""
    lines = [
        "#compdef reconciler",
        "# Completion of reconciler for zsh. Put it as _reconciler into a folder of $fpath.",
    ]
    for command in all_:
        lines += [f"{_function(command.words)}() {{", *_zsh_body(command), "}"]
    loaded = 'if [ "$funcstack[1]" = _reconciler ]; then _reconciler "$@"; else compdef _reconciler reconciler; fi'
    return "\n".join([*lines, loaded, ""])


def _zsh_body(command: Command) -> Iterator[str]:
    specs = [_zsh_flag(flag) for flag in command.flags]
    if not command.inner:
        what = f"({' '.join(command.choices)})" if command.choices else "_files"
        yield "  _arguments -S " + " ".join([*specs, _quoted(f"*:argument:{what}")])
        return
    yield "  local curcontext=$curcontext state line"
    yield "  local -a inner"
    shown = " ".join(_quoted(f"{name}:{text}") for name, text in command.inner)
    yield f"  inner=({shown})"
    yield "  _arguments -C " + " ".join([*specs, "'1:command:->command'", "'*::argument:->argument'"])
    yield "  case $state in"
    yield "    command) _describe command inner ;;"
    yield "    argument) case $line[1] in"
    for name, _ in command.inner:
        yield f"      {name}) {_function((*command.words, name))} ;;"
    yield "    esac ;;"
    yield "  esac"


def _zsh_flag(flag: Flag) -> str:
    """`--name[help]:value:choices`; both spellings of a flag in one spec would need brace expansion, so one each."""
    text = flag.help.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    value = ""
    if flag.value:
        value = f":value:({' '.join(flag.choices)})" if flag.choices else ":file:_files" if flag.file else ":value: "
    many = "*" if flag.repeats else ""
    return " ".join(_quoted(f"{many}{name}[{text}]{value}") for name in flag.names)


def _function(words: tuple[str, ...]) -> str:
    return "_".join(("_reconciler", *words))


def fish(all_: list[Command]) -> str:
    lines = ["# Completion of reconciler for fish. Put it into ~/.config/fish/completions/reconciler.fish"]
    for command in all_:
        here = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
        deeper = " ".join(name for name, _ in command.inner)
        if deeper:
            nothing = f"not __fish_seen_subcommand_from {deeper}"
            condition = f"{here}; and {nothing}" if here else nothing
            for name, text in command.inner:
                lines.append(f"complete -c reconciler -f -n {_quoted(condition)} -a {name} -d {_quoted(text)}")
        else:
            condition = here
        if command.choices:
            lines.append(f"complete -c reconciler -f -n {_quoted(condition)} -a {_quoted(' '.join(command.choices))}")
        lines += (_fish_flag(flag, condition) for flag in command.flags)
    return "\n".join([*lines, ""])


def _fish_flag(flag: Flag, condition: str) -> str:
    parts = ["complete -c reconciler"]
    if condition:
        parts.append(f"-n {_quoted(condition)}")
    parts += (f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    if flag.choices:
        parts.append(f"-x -a {_quoted(' '.join(flag.choices))}")
    elif flag.value:
        parts.append("-r -F" if flag.file else "-x")
    return " ".join([*parts, f"-d {_quoted(flag.help)}"])
