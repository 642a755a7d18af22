"""What leaves the program: results on stdout, everything else on stderr, secrets in neither."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TextIO

from reconciler.app import Failure, Redactor, Session
from reconciler.cli.ending import Ending
from reconciler.cli.json_log import Handler, JsonLog, said
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.errors import ReadError
from reconciler.model.log_commands import in_markup
from reconciler.model.plan import Plan
from reconciler.render.columns import fitted
from reconciler.render.safe_text import bounded, safe_line, safe_output, traceback_lines
from reconciler.render.text import diagnostics_text


class Output:
    """`log` is there when stderr is for programs."""

    def __init__(self, debug: bool = False, color: str = "auto", log: JsonLog | None = None) -> None:
        self.debug = debug
        self._color = color
        self.session = Session(self.say)
        self.told: list[Diagnostic] = []
        """Without secrets, for formats that carry diagnostics beside a plan."""
        self.warned: list[str] = []
        """Warnings that are about no place in a manifest, without secrets: for the same formats."""
        self.given = False
        """Something was written as the result, or tried."""
        self.ending = Ending(self.say, self.redactor.text)
        self._log = log
        if log is not None:
            log.clean = self.redactor.value
            self.session.tell = log.tell

    @property
    def redactor(self) -> Redactor:
        return self.session.redactor

    @property
    def color(self) -> bool:
        return self._colored(sys.stdout)

    @property
    def width(self) -> int | None:
        """Columns of the terminal that shows the result; None when there is none."""
        if not _is_terminal(sys.stdout):
            return None
        import shutil

        return shutil.get_terminal_size().columns

    @property
    def message_width(self) -> int | None:
        """Of the terminal that shows messages and questions, which need not be that of stdout."""
        if sys.stderr is None or not _is_terminal(sys.stderr):
            return None
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or None
        except (OSError, ValueError):
            return None

    def _colored(self, stream: TextIO | None) -> bool:
        """--color has the last word; NO_COLOR counts when it is not empty (no-color.org)."""
        if self._color != "auto":
            return self._color == "always"
        return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def masked(self, text: str) -> str:
        """A rendered text without secrets. JSON is masked value by value, so that it stays JSON."""
        clean = self.redactor.content(text)
        if clean == text or not text.startswith("{"):
            return clean
        import json

        from reconciler.render.as_json import dumped

        return dumped(self.redactor.value(json.loads(text), self.redactor.content))

    def result(self, text: str, exact: bool = False) -> None:
        """`exact`: a plan that `apply` can run, which must not be masked. Raises Failure when it cannot be written: a
        result that nobody gets must not look like success."""
        self.given = True
        text = safe_output(text if exact else self.masked(text))
        text = in_markup(text) if text.startswith("<") else text
        if sys.stdout is None:
            raise Failure("the result cannot be written: stdout is closed")
        try:
            _put(sys.stdout, text)
        except OSError as error:
            _forget(sys.stdout)
            raise Failure(f"the result cannot be written to stdout: {error.strerror}") from error

    def say(self, text: str) -> None:
        """One message to a person, and one line: a line end in it came with a name or a message from outside, and what
        is outside must not begin a line."""
        level, event, message = said(text)
        if level == "error":
            self.ending.problems.append(message)
        elif level == "warning":
            self.warned.append(self.redactor.text(message))
        if self._log is not None:
            self._log.tell(level, event, message)
            return
        shown = fitted(self._line(text), self.message_width)
        _put(sys.stderr, (_marked(shown) if self._colored(sys.stderr) else shown) + "\n")

    def say_lines(self, lines: Sequence[str]) -> None:
        """A message of several lines, which only the caller can tell apart."""
        if self._log is not None:
            self._log.tell("info", "message", "\n".join(lines))
            return
        _put(sys.stderr, "".join(f"{fitted(self._line(line), self.message_width)}\n" for line in lines))

    def _line(self, text: str) -> str:
        return safe_line(self.redactor.text(text))

    def no_result(self, message: str, how: str, error: ReadError | None = None) -> None:
        """Whoever asked for JSON gets one document, also of a run that has no result: with all that was told."""
        if how == "json" and not self.given:
            from reconciler.render.as_json import failure_json

            with suppress(Failure):  # It is told on stderr.
                self.result(failure_json(self.redactor.text(message), self.told, error))

    def made(self, plan: Plan) -> None:
        """The plan of this run, for those who learn of it afterwards."""
        self.ending.plan = plan
        if self._log is not None:
            self._log.context["plan_id"] = plan.plan_id

    def ended(self, code: int) -> None:
        """The last thing that is said. Whoever reads the log for programs need not know the exit codes by heart."""
        run = self.ending.write(code)
        if self._log is not None:
            level = "info" if run.succeeded else "error"
            told = {"command": run.command, "outcome": run.outcome, "exit_code": code, "seconds": round(run.seconds, 3)}
            self._log.tell(level, "run_ended", f"{run.command}: {run.outcome}, exit code {code}", told)

    def diagnostics(self, found: Sequence[Diagnostic]) -> None:
        found = [self.cleaned(d) for d in found]
        self.told += found
        errors = [d for d in found if d.severity == "error"]
        self.ending.problems += [_problem(d) for d in errors]
        if self._log is None:
            _put(sys.stderr, fitted(diagnostics_text(found), self.message_width))
            return
        for one in found:
            fields = {k: v for k, v in one.to_json().items() if k not in ("severity", "message")}
            self._log.tell(one.severity, "diagnostic", bounded(one.message), {**fields, "hint": bounded(one.hint)})

    def cleaned(self, found: Diagnostic) -> Diagnostic:
        clean = self.redactor.text
        return replace(found, message=clean(found.message), hint=clean(found.hint))

    def set_up_logging(self, level: str) -> None:
        """All loggers, those of libraries included, go through the redactor."""
        handler: logging.Handler = logging.StreamHandler(sys.stderr) if self._log is None else Handler(self._log)
        handler.setLevel(level.upper())  # Some libraries set their own logger to INFO.
        handler.setFormatter(_SafeLines(self.redactor))
        logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
        logging.captureWarnings(True)

    def traceback(self, error: BaseException) -> None:
        lines = [*traceback_lines(error)]
        if self._log is not None:
            self._log.tell("error", "traceback", f"{type(error).__name__}: {error}", {"traceback": "\n".join(lines)})
        else:
            _put(sys.stderr, "".join(f"{self._line(line)}\n" for line in lines))


class _SafeLines(logging.Formatter):
    """For all loggers, those of libraries included, which repeat what services and files say: a record is one line
    without secrets, and so is each line of its traceback."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        lines = [self.formatMessage(record)]
        if record.exc_info and record.exc_info[1] is not None:
            lines += traceback_lines(record.exc_info[1])
        return "\n".join(safe_line(self._redactor.text(line)) for line in lines)


def _problem(found: Diagnostic) -> str:
    """In one line, for those who did not watch."""
    told = f"{found.source}: {bounded(found.message)} [{found.code}]"
    return f"{told}; {bounded(found.hint)}" if found.hint else told


_COLORS = {"error": "1;31", "internal error": "1;31", "warning": "33", "note": "36"}


def _marked(message: str) -> str:
    """The first word in colour, when it says how serious the message is."""
    word, colon, rest = message.partition(":")
    return f"\x1b[{_COLORS[word]}m{word}:\x1b[0m{rest}" if colon and word in _COLORS else message


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # Closed.
        return False


def _put(stream: TextIO | None, text: str) -> None:
    """A reader that went away is no error, nor is a stderr that was closed."""
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _forget(stream)
    except UnicodeEncodeError:
        stream.write(text.encode("ascii", "backslashreplace").decode())
        stream.flush()


def _forget(stream: TextIO) -> None:
    """What is left in the buffer goes nowhere: Python's own flush at exit must not complain or change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
