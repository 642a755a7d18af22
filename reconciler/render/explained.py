"""Explanations as text, as markdown and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.explanation import KINDS, Example, Explanation, Repeated
from reconciler.render.as_json import dumped
from reconciler.render.columns import NARROWEST, fitted, wrapped

WIDTH = 100
_BESIDE = " (beside a catalog `lake` with the namespace `n`)"


def explained(found: Sequence[Explanation], how: str, columns: int | None = None) -> str:
    """`columns`: of the terminal; examples stay as they are, for they are to be copied."""
    if how == "json":
        return dumped({"explanations": [e.to_json() for e in found]})
    texts = (_markdown(e) if how == "markdown" else _text(e, columns) for e in found)
    return "\n".join("\n".join(lines) + "\n" for lines in texts)


def filled(text: str, columns: int | None) -> str:
    """A paragraph for people, no wider than is good to read."""
    return textwrap.fill(text, WIDTH if columns is None else min(WIDTH, max(columns, NARROWEST)))


def listed(found: Sequence[Explanation], how: str, columns: int | None = None) -> str:
    if how == "json":
        return dumped({"explanations": [{"code": e.code, "kind": e.kind, "title": e.title} for e in found]})
    text = "".join(f"{line}\n" for line in _list_lines(found, how == "markdown"))
    return text if how == "markdown" else fitted(text, columns)


def _list_lines(found: Sequence[Explanation], markdown: bool) -> Iterator[str]:
    for kind, title in KINDS.items():
        entries = [e for e in found if e.kind == kind]
        wide = max((len(e.code) for e in entries), default=0)
        yield f"## {title}\n" if markdown else title
        if markdown:
            yield from ("| code | title |", "|---|---|")
        for e in entries:
            yield f"| `{e.code}` | {e.title} |" if markdown else f"  {e.code:{wide}}  {e.title}"
        yield ""
    yield "`reconciler explain CODE` says what one means, with an example and the fix."


def _text(e: Explanation, columns: int | None) -> Iterator[str]:
    yield from wrapped(f"{e.code}: {e.title}", columns)
    yield ""
    yield filled(e.means, columns)
    yield ""
    yield filled(f"Fix: {e.fix}", columns)
    for title, example in _examples(e):
        yield ""
        yield from wrapped(f"{title}:", columns)
        yield from (f"    {line}" if line else "" for line in _lines(example))


def _markdown(e: Explanation) -> Iterator[str]:
    yield f"## {e.code}: {e.title}"
    yield ""
    yield e.means
    yield ""
    yield f"**Fix:** {e.fix}"
    for title, example in _examples(e):
        yield ""
        yield f"{title}:"
        yield ""
        yield "```yaml" if _is_manifest(example) else "```text"
        yield from _lines(example)
        yield "```"


def _examples(e: Explanation) -> Iterator[tuple[str, Example]]:
    manifest = e.bad is not None and _is_manifest(e.bad) and not e.setting.alone
    if e.bad is not None:
        yield f"Example{_given(e, 'bad')}{_BESIDE if manifest else ''}", e.bad
    if e.good is not None:
        yield f"Corrected{_given(e, 'good')}", e.good


def _given(e: Explanation, which: str) -> str:
    """What the text does not show, and the mistake may be in: which paths and environment, saved how."""
    paths, asked = e.setting.paths.get(which, ()), e.setting.environment.get(which)
    words = [*paths, *(["--env", asked] if asked else [])]
    command = f", `reconciler validate {' '.join(words)}`" if paths else f" with --env {asked}" if asked else ""
    saved = e.setting.encoding.get(which)
    return f"{command}, saved as {saved}" if saved else command


def _is_manifest(example: Example) -> bool:
    """Not one that is shown on a command line."""
    texts: Iterable[str] = (example,) if isinstance(example, str) else ()
    if isinstance(example, Repeated):
        texts = (example.before,)
    elif not isinstance(example, str):
        texts = example.values()
    return any("apiVersion:" in text and "\n$ " not in f"\n{text}" for text in texts)


def _lines(example: Example) -> Iterator[str]:
    if isinstance(example, str):
        yield from _visible(example)
    elif isinstance(example, Repeated):
        yield from _visible(example.before)
        yield from _visible(example.text)
        yield f"… {example.times} times"
        yield from _visible(example.after)
    else:
        for name, text in example.items():
            yield f"# {name}"
            yield from _visible(text)


def _visible(text: str) -> list[str]:
    """An example may hold a character that it is about."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return ["".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in line) for line in lines]
