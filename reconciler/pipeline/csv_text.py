"""The text of a csv file on its way to pyarrow's reader, which is lenient: a quote that is never closed makes one value
of the rest of the file, and text after a closing quote becomes part of the value. Here both are errors with their line.

The module stands alone: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_LINE_ENDS = b"\r\n"
_MARK = b"\xef\xbb\xbf"
LONGEST = 32 * 2**20
"""Of a quoted value, in bytes."""
CHUNK = 2**20


class TextProblem(ValueError):
    """What is wrong with the text, and in which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Quotes:
    """Reads the chunks of a file one after the other. Quotes within an unquoted value are text."""

    def __init__(self, delimiter: str, quote: str) -> None:
        self._quote = quote.encode()
        self._around = frozenset(delimiter.encode() + _LINE_ENDS)
        self._open = b""
        """From a quote that is not closed yet."""
        self._line = 1
        self._begins = True
        """A value begins where the next text does."""
        self._first = True

    def take(self, chunk: bytes, last: bool = False) -> None:
        """Raises TextProblem."""
        text = self._open + chunk
        if self._first:
            if len(text) < len(_MARK) and not last:
                self._open = text
                return
            text, self._first = text.removeprefix(_MARK), False
        end = len(text) if self._quote not in text else self._pairs(text)
        if end is None or (last and end < len(text)):
            end = self._one_by_one(text, last)
        self._line += text.count(b"\n", 0, end)
        if end:
            self._begins = text[end - 1] in self._around
        self._open = text[end:]
        if self._open and last:
            raise TextProblem(self._line, "a quote begins here and is never closed")
        if len(self._open) > LONGEST:
            raise TextProblem(self._line, f"a quote begins here and is not closed within {LONGEST} bytes")

    def _pairs(self, text: bytes) -> int | None:
        """To where all values are whole; None when quotes do not simply open and close values."""
        import numpy

        data = numpy.frombuffer(text, numpy.uint8)
        places = numpy.flatnonzero(data == self._quote[0])
        count = len(places)
        whole = count - 1 if count % 2 else count - 2 if places[-1] == len(text) - 1 else count
        while 0 < whole < count and places[whole] == places[whole - 1] + 1:
            whole -= 2  # two quotes in a value stand for one
        around = numpy.zeros(256, bool)
        around[list(self._around)] = True
        opens, closes = places[:whole:2], places[1:whole:2]
        begun = around[data[opens - 1]]
        if whole and opens[0] == 0:
            begun[0] = self._begins
        ended = around[data[numpy.minimum(closes + 1, len(text) - 1)]]
        again = opens[1:] == closes[:-1] + 1
        begun[1:] |= again
        ended[:-1] |= again
        end = int(places[whole]) if whole < count else len(text)
        if whole < count and not (around[data[end - 1]] if end else self._begins):
            return None
        return end if begun.all() and ended.all() else None

    def _one_by_one(self, text: bytes, last: bool) -> int:
        """The same, wherever quotes stand."""
        at = text.find(self._quote)
        while at >= 0:
            if not (self._begins if at == 0 else text[at - 1] in self._around):
                at = text.find(self._quote, at + 1)
                continue
            close = text.find(self._quote, at + 1)
            while close >= 0 and text[close + 1 : close + 2] == self._quote:
                close = text.find(self._quote, close + 2)
            if close < 0 or (close + 1 == len(text) and not last):
                return at
            if close + 1 < len(text) and text[close + 1] not in self._around:
                line = self._line + text.count(b"\n", 0, at)
                raise TextProblem(line, "a quote begins here, and text follows where it is closed")
            at = text.find(self._quote, close + 1)
        return len(text)


class Checked(io.RawIOBase):
    """A stream that reads another one, and looks at its quotes."""

    def __init__(self, stream: Any, delimiter: str, quote: str) -> None:
        self._stream = stream
        self._quotes = Quotes(delimiter, quote)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._quotes.take(bytes(data), last=not data)
        buffer[: len(data)] = data
        return len(data)


def line_of(stream: Any, options: Mapping[str, Any], wrong: Callable[[int, list[str]], bool]) -> int | None:
    """The first line of the first row that is wrong, by its number (from 0, the header left out) and its values."""
    text = io.TextIOWrapper(io.BufferedReader(stream, CHUNK), "utf-8-sig", errors="replace", newline="")
    shape = {"delimiter": options.get("delimiter", ","), "quotechar": options.get("quote", '"')}
    csv.field_size_limit(LONGEST)
    for number, (line, values) in enumerate(_rows(csv.reader(text, **shape)), -1 if options.get("header", True) else 0):
        if number >= 0 and wrong(number, values):
            return line
    return None


def _rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    before = 0
    for values in reader:
        if values:
            yield before + 1, values
        before = reader.line_num
