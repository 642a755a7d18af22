"""Our notes about objects whose properties cannot be changed: namespaces below `__reconciler`, one for each record.

They lie in sixteen namespaces by the first digit of their key, so that reading one of many does not list them all.
The protocol has no update, so a record is never changed: a newer one with the next number is created, then the older
ones are dropped. Readers take the highest number. Two writers of one number: the second is told so by the server.

A record speaks of one incarnation of an object only. A table's is bound to its location; a namespace's to the
properties that it was created with. Somebody else's object of the same name is not taken for ours. Of a table that we
removed only the place is noted, without an owner: whoever registers that folder again owns the entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from reconciler.catalog.lease_records import NOTE
from reconciler.catalog.locations import same_location
from reconciler.catalog.marks import join, split
from reconciler.catalog.rest_api import RestApi, text_map
from reconciler.catalog.rest_capabilities import INVENTORY
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.state import EMPTY, Marks

_NAME = re.compile(r"([0-9a-f]{32})-([0-9]{8})")
_ID, _KIND, _LOCATION, _BORN = ("reconciler.id", "reconciler.kind", "reconciler.location", "reconciler.born-with")
_KEPT = "reconciler.properties"
_STAYS = "reconciler.stays"
_DIGITS = frozenset("0123456789abcdef")
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Record:
    marks: Marks
    location: str | None = None
    """Of a table: where its data is, also when it is not in the catalog any more. None: it is about to be declared, and
    the server chooses."""
    born_with: str | None = None
    """Of a namespace: a digest of the properties that the server shows."""
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """The user's, of a table that was registered on its data: servers (pylance's) do not keep them then, and a table
    that comes back would be without them for ever."""
    stays: bool = False
    """Of a table: it was deregistered, and the server went on showing it."""

    def kept_for(self, location: str) -> Mapping[str, str]:
        return self.properties if self.owns(location) else EMPTY

    def owns(self, location: str) -> bool:
        """Whether it speaks of the table at this location, and makes it somebody's. A note of where removed data is
        does not."""
        return self.marks.owner is not None and (self.location is None or same_location(self.location, location))

    def applied_to(self, properties: Mapping[str, str], location: str | None = None) -> dict[str, str]:
        """The properties as they are with these marks, if they are of this very object."""
        ours = self.owns(location) if location is not None else self.born_with == digest(properties)
        if not ours:
            return self.in_doubt(properties)
        return join({**self.properties, **split(properties)[0]}, self.marks)

    def in_doubt(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Protection stays: too much of it harms nobody."""
        users, own = split(properties)
        return join(users, replace(own, protect=own.protect or self.marks.protect))


def digest(properties: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(properties), sort_keys=True).encode()).hexdigest()[:32]


def key_of(kind: Kind, ident: Ident) -> str:
    return hashlib.sha256(json.dumps([kind, *ident]).encode()).hexdigest()[:32]


class Inventory:
    def __init__(self, api: RestApi, threads: int) -> None:
        self._api = api
        self._threads = threads

    def load(self) -> Notes:
        """Everything, for a scan: the listings and one read for each record. Raises when it cannot be listed; a record
        that cannot be read makes its object unreadable, nothing else."""
        shards = [name for name in self._inside((INVENTORY,)) if name in _DIGITS]
        if not shards:
            return Notes({})
        with ThreadPoolExecutor(self._threads) as pool:
            names = [item for shard in pool.map(self._names, shards) for item in shard.items()]
            newest = {key: max(numbers) for key, numbers in names}
            found = pool.map(self._load_one, newest, newest.values())
            return Notes({key: record for key, record in zip(newest, found, strict=True) if record is not None})

    def _load_one(self, key: str, number: int) -> Record | CatalogError | None:
        try:
            return self._read(key, number) or self._find(key)
        except CatalogError as error:
            return error

    def find(self, kind: Kind, ident: Ident) -> Record | None:
        """As it is now."""
        return self._find(key_of(kind, ident))

    def _find(self, key: str) -> Record | None:
        for _ in range(_ROUNDS):
            numbers = self._names(key[0]).get(key)
            if not numbers:
                return None
            record = self._read(key, max(numbers))
            if record is not None:
                return record  # else it was replaced between the two calls
        raise CatalogError(Code.CONCURRENT_MODIFICATION, f"a record in {INVENTORY} changes all the time: try again")

    def save(self, kind: Kind, ident: Ident, record: Record) -> bool:
        """False, and nothing is done, when it says so already. The new record is there before the old one goes. It
        looks first, so it is run again until it is done: no read of the object shows whether its record was written."""
        return self._api.http.until_done(lambda: self._save(kind, ident, record))

    def _save(self, kind: Kind, ident: Ident, record: Record) -> bool:
        key = key_of(kind, ident)
        names = self._names(key[0])
        numbers = names.get(key, [])
        number = max(numbers, default=0)
        if number and self._read(key, number) == record:
            return False
        if not names:
            self._api.make_namespaces((INVENTORY, key[0]), {"description": NOTE})
        self._create(key, number + 1, _stored(kind, ident, record))
        self._remove(key, numbers)
        return True

    def forget(self, kind: Kind, ident: Ident) -> None:
        """Best effort: a record that stays behind fits no object."""
        key = key_of(kind, ident)
        with contextlib.suppress(CatalogError):
            self._remove(key, self._names(key[0]).get(key, []))

    def _create(self, key: str, number: int, properties: Mapping[str, str]) -> None:
        try:
            self._api.create_namespace(_ident(key, number), properties)
        except CatalogError as error:
            raise _overtaken() if error.code is Code.NAMESPACE_ALREADY_EXISTS else error from None

    def _remove(self, key: str, numbers: list[int]) -> None:
        for number in numbers:
            with contextlib.suppress(CatalogError):  # an older record is never read again
                self._api.drop_namespace(_ident(key, number))

    def _names(self, digit: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name in self._inside((INVENTORY, digit)):
            if match := _NAME.fullmatch(name):
                found.setdefault(match[1], []).append(int(match[2]))
        return found

    def _inside(self, ident: Ident) -> list[str]:
        """Empty when it is not there: some servers say so, others list nothing."""
        try:
            return self._api.names(ident, "namespace")
        except CatalogError as error:
            if error.code is Code.NAMESPACE_NOT_FOUND:
                return []
            raise

    def _read(self, key: str, number: int) -> Record | None:
        properties = self._api.namespace(_ident(key, number))
        if properties is None:
            return None
        marks, kept, stays = split(properties)[1], _kept(properties, key), properties.get(_STAYS) == "true"
        return Record(marks, properties.get(_LOCATION), properties.get(_BORN), kept, stays)


class Notes:
    """The inventory as a scan found it."""

    def __init__(self, records: Mapping[str, Record | CatalogError]) -> None:
        self._records = records

    def of(self, kind: Kind, ident: Ident) -> Record | None:
        """Raises the error with which its record could not be read."""
        record = self._records.get(key_of(kind, ident)) if self._records else None
        if isinstance(record, CatalogError):
            raise CatalogError(record.code, f"our record of {dotted(ident)} in {INVENTORY}: {record.message}")
        return record


def _ident(key: str, number: int) -> Ident:
    return (INVENTORY, key[0], f"{key}-{number:08d}")


def _stored(kind: Kind, ident: Ident, record: Record) -> dict[str, str]:
    stored = join({}, record.marks)
    stored |= {_KIND: kind, _ID: json.dumps(list(ident), ensure_ascii=False)}
    if record.location is not None:
        stored[_LOCATION] = record.location
    if record.born_with is not None:
        stored[_BORN] = record.born_with
    if record.stays:
        stored[_STAYS] = "true"
    if record.properties:
        stored[_KEPT] = json.dumps(dict(record.properties), sort_keys=True, ensure_ascii=False)
    return stored


def _kept(stored: Mapping[str, str], key: str) -> Mapping[str, str]:
    text = stored.get(_KEPT)
    if text is None:
        return EMPTY
    try:
        return text_map(json.loads(text), f"read the record {key} in {INVENTORY}")
    except ValueError:
        raise CatalogError(Code.INTERNAL, f"the record {key} in {INVENTORY} is damaged") from None


def _overtaken() -> CatalogError:
    return CatalogError(Code.CONCURRENT_MODIFICATION, f"another run wrote the same record in {INVENTORY}")
