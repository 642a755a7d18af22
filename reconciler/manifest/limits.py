"""What references may reach: the manifests of strangers must not name what they have no business with."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.manifest.links import is_in, root
from reconciler.model.reading import Reading

SQL_CODE = "M496"
"""SQL that does more than compute with rows, which `--allow-sql-code` permits."""


@dataclass(frozen=True, slots=True)
class Limits:
    env: tuple[str, ...] | None = None
    """Beginnings of names of environment variables; None: every name."""
    files: tuple[str, ...] | None = None
    """Folders that files must be in; None: anywhere."""
    late: bool = True
    """The references of connections and sources count too. Not so where those are taken from another place, or used
    only when they are equal to what stands there."""
    resolve: bool = True
    """False: nothing is read from the environment or from files; what a reference stands for stays unknown."""

    permitted: frozenset[str] = frozenset()
    """Codes of what the caller permits all manifests."""

    def when_opened(self) -> Limits:
        """For the references of connections and sources, once they are resolved."""
        return self if self.late else Limits(permitted=self.permitted)

    def problem(self, kind: str, name: str) -> tuple[str, str, str] | None:
        """Code, message and hint. The same whether or not there is such a variable or file."""
        if kind == "env" and self.env is not None and not name.startswith(self.env):
            hint = "name it with --env-allow, unless it is a secret: values outside of Catalog documents are shown"
            return "M310", f"the environment variable {name} may not be used here", hint
        if kind == "file" and self.files is not None and not is_in(name, tuple(filter(None, map(root, self.files)))):
            hint = "name its folder with --file-root, unless it holds secrets: values outside of Catalog documents are "
            return "M311", f"the file {name} may not be read here", self._led_away() or hint + "shown"
        return None

    def _led_away(self) -> str | None:
        """A folder of a checkout may be a link that a stranger made."""
        away = [folder for folder in self.files or () if root(folder) is None]
        return (
            f"not used: --file-root {away[0]} is a link that leads elsewhere; give the folder itself" if away else None
        )


UNLIMITED = Limits()


def limits_of(reading: Reading) -> Limits:
    """With `--catalogs-from` the manifests are somebody else's: what is not allowed is refused."""
    strange = bool(reading.catalogs_from)
    return Limits(
        reading.env_allow if reading.env_allow or strange else None,
        reading.file_root if reading.file_root or strange else None,
        late=not strange,
        resolve=reading.resolve,
        permitted=frozenset({SQL_CODE} if reading.sql_code else ()),
    )
