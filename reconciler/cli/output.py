"""What leaves the program: results on stdout, everything else on stderr, secrets in neither."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from reconciler.app import Failure, Redactor, Session
from reconciler.model.diagnostic import Diagnostic
from reconciler.render.safe_text import safe_lines
from reconciler.render.text import diagnostics_text


class Output:
    def __init__(self, debug: bool = False, color: str = "auto") -> None:
        self.debug = debug
        self._color = color
        self.session = Session(self.say)

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

    def _colored(self, stream: TextIO | None) -> bool:
        """--color has the last word; NO_COLOR counts when it is not empty (no-color.org)."""
        if self._color != "auto":
            return self._color == "always"
        return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def result(self, text: str) -> None:
        """Raises Failure when it cannot be written: a result that nobody gets must not look like success."""
        if sys.stdout is None:
            raise Failure("the result cannot be written: stdout is closed")
        try:
            _put(sys.stdout, text)
        except OSError as error:
            _forget(sys.stdout)
            raise Failure(f"the result cannot be written to stdout: {error.strerror}") from error

    def say(self, text: str) -> None:
        """One message to a person."""
        shown = safe_lines(self.redactor.text(text))
        _put(sys.stderr, (_marked(shown) if self._colored(sys.stderr) else shown) + "\n")

    def diagnostics(self, found: Sequence[Diagnostic]) -> None:
        _put(sys.stderr, self.redactor.text(diagnostics_text(found)))

    def set_up_logging(self, level: str) -> None:
        """All loggers, those of libraries included, go through the redactor."""
        from reconciler.app import RedactingFormatter

        handler = logging.StreamHandler(sys.stderr)
        handler.setLevel(level.upper())  # Some libraries set their own logger to INFO.
        handler.setFormatter(RedactingFormatter(self.redactor, "%(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
        logging.captureWarnings(True)

    def traceback(self, error: BaseException) -> None:
        import traceback

        _put(sys.stderr, self.redactor.text("".join(traceback.format_exception(error))))


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
