"""argv -> use case -> renderer -> exit code; no logic. Everything heavy loads after the command line was understood."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.cli.arguments import parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from reconciler.cli.json_log import JsonLog
    from reconciler.cli.output import Output


def run(argv: Sequence[str]) -> int:
    """The whole program. Returns the exit code; only --help, --version and a wrong command line raise SystemExit."""
    if not any(word.startswith("--log-format") for word in argv):
        return _run(argv)
    from reconciler.cli.json_log import stderr_as_json

    with stderr_as_json(argv) as log:
        return _run(argv, log)


def _run(argv: Sequence[str], log: JsonLog | None = None) -> int:
    top = parser()
    args = top.parse_args(argv)
    import contextlib
    import signal

    from reconciler.cli.command_line import told_command
    from reconciler.cli.exits import INTERRUPTED
    from reconciler.cli.output import Output

    with contextlib.suppress(ValueError):  # Not the main thread: signals are someone else's business.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    out = Output(args.debug, args.color, log)
    out.session.command = told_command(top, args)
    out.set_up_logging(args.log_level)
    out.ending.begin(args)
    code = INTERRUPTED
    try:
        code = _command(args, out)
    finally:
        out.ended(code)
    return code


def _command(args: argparse.Namespace, out: Output) -> int:
    import importlib

    from reconciler.app import Failure
    from reconciler.cli.exits import ERROR, INTERRUPTED, PARTLY
    from reconciler.cli.requests import reading
    from reconciler.model.report import EXIT_CODES

    how = getattr(args, "format", "")
    try:
        if hasattr(args, "env_allow"):
            out.session.keep_to(reading(args))
        command = importlib.import_module(f"reconciler.cli.{args.module}")
        if (seconds := getattr(args, "timeout", None)) is None:
            return int(command.run(args, out))
        from reconciler.catalog.deadline import deadline

        with deadline(seconds):
            return int(command.run(args, out))
    except Failure as error:
        out.diagnostics(error.diagnostics)
        out.say(f"error: {error.message}")
        out.no_result(error.message, how, error.error)
        return error.exit_code or EXIT_CODES[error.outcome]
    except KeyboardInterrupt:
        out.say("interrupted: nothing was written")
        out.no_result("interrupted: nothing was written", how)
        return INTERRUPTED
    except Exception as error:
        if args.debug:
            out.traceback(error)
        hint = "" if args.debug else " (run with --debug for the traceback)"
        message = f"internal error: {type(error).__name__}: {error}"
        out.say(f"{message}{hint}")
        out.no_result(message, how)
        return PARTLY if out.session.writing else ERROR
    finally:
        out.session.close()
