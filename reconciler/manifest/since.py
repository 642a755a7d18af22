"""What a run with `--changed-since` is about. Git is asked before the documents are read, so that the run keeps those
of the files that changed, and no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from reconciler.manifest.affected import Changed, affected
from reconciler.manifest.changed_documents import changed_documents
from reconciler.manifest.changed_files import ChangedFiles, changed_files
from reconciler.manifest.defaults import Defaults
from reconciler.manifest.git import GitError
from reconciler.manifest.identity import Key
from reconciler.manifest.prepare import File
from reconciler.manifest.repository_places import Found
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import Diagnostic, Source


class Since:
    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.diagnostics: list[Diagnostic] = []
        """Why git has no answer."""
        self._given = ""
        self._layered = False
        self._files: dict[str, File] = {}
        self._asked: ChangedFiles | None = None

    def ask(self, paths: Sequence[str], base: Sequence[File], overlay: Sequence[File], environment: str) -> None:
        """Before the documents of these files are read."""
        self._given = paths[0]
        self._layered = bool(environment)
        found = Found(paths, [f.sink.file for f in base], [f.sink.file for f in overlay], environment)
        try:
            self._asked = changed_files(self.revision, found)
        except GitError as error:
            self._refused(error)
            return
        names = {candidate.file for candidate in self._asked.candidates}
        self._files = {file.sink.file: file for file in (*base, *overlay) if file.sink.file in names}
        for file in self._files.values():
            file.keep = True

    def changed(
        self, desired: Desired, uses: Mapping[Key, Set[str]], defaults: Defaults, expand: Callable[[str], str]
    ) -> Changed | None:
        """After it; None when git has no answer."""
        if self._asked is None:
            return None
        try:
            changes = changed_documents(self._asked, self._files, expand)
        except GitError as error:
            self._refused(error)
            return None
        return affected(changes, desired, uses, defaults, self._layered)

    def _refused(self, error: GitError) -> None:
        self.diagnostics.append(Diagnostic(Source(self._given), error.code, "error", error.message, error.hint))
