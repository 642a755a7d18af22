"""One file, from any store to any other: complete or not there, and never over another one."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from servers.moto import Moto

from reconciler.pipeline import copy_task

DATA = b"0123456789" * 1000
NAME = "data/a b.lance"


class Store:
    def __init__(self, uri: str, options: dict[str, str], moto: Moto | None) -> None:
        self.side = {"uri": uri, "options": options}
        self._uri, self._moto = uri, moto

    @property
    def _key(self) -> dict[str, str]:
        bucket, _, folder = self._uri.removeprefix("s3://").partition("/")
        return {"Bucket": bucket, "Key": f"{folder.replace('%20', ' ')}/{NAME}"}

    def put(self, data: bytes) -> None:
        if self._moto is not None:
            self._moto.client.put_object(**self._key, Body=data)
        else:
            Path(self._uri, NAME).parent.mkdir(parents=True, exist_ok=True)
            Path(self._uri, NAME).write_bytes(data)

    def get(self) -> bytes:
        if self._moto is not None:
            return bytes(self._moto.client.get_object(**self._key)["Body"].read())
        return Path(self._uri, NAME).read_bytes()


def answer(unit: dict[str, Any]) -> dict[str, Any]:
    (batch,) = copy_task.copy({"key": 7, "path": NAME, "anew": False, **unit})
    found: dict[str, Any] = json.loads(batch.column(0)[0].as_py())
    assert found.pop("key") == 7
    return found


def stores(old: str, new: str, folder: Path, moto: Moto) -> tuple[Store, Store]:
    def one(kind: str, name: str) -> Store:
        if kind == "disk":
            return Store(str(folder / name), {}, None)
        with_more = {"client_max_retries": "1"} if kind == "other bucket" else {}
        bucket = moto.make_bucket(f"{name}-{uuid.uuid4().hex[:12]}")
        return Store(f"{bucket}/t%20x", {**moto.storage_options, **with_more}, moto)

    return one(old, "old"), one(new, "new")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [("disk", "disk"), ("disk", "bucket"), ("bucket", "disk"), ("bucket", "bucket"), ("bucket", "other bucket")],
)
def test_copied_once(old: str, new: str, tmp_path: Path, moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = stores(old, new, tmp_path, moto)
    source.put(DATA)
    unit = {"source": source.side, "target": target.side}
    if (old, new) == ("bucket", "bucket"):
        monkeypatch.setattr(copy_task, "_carried", None)  # No byte comes through here.
    assert answer(unit) == {"bytes": len(DATA)}
    assert target.get() == DATA
    assert answer(unit) == {"bytes": 0}
    source.put(DATA[::-1])
    assert answer({**unit, "anew": True}) == {"bytes": len(DATA)}
    assert target.get() == DATA[::-1]


@pytest.mark.slow
def test_what_s3_does_not_copy_itself_is_carried(tmp_path: Path, moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = stores("bucket", "bucket", tmp_path, moto)
    source.put(DATA)
    monkeypatch.setattr(copy_task, "NATIVE_BYTES", 10)
    assert answer({"source": source.side, "target": target.side}) == {"bytes": len(DATA)}
    assert target.get() == DATA


@pytest.mark.slow
def test_another_file_in_a_bucket_is_left_alone(tmp_path: Path, moto: Moto) -> None:
    source, target = stores("bucket", "bucket", tmp_path, moto)
    source.put(DATA)
    target.put(b"theirs")
    assert "is there with 6 bytes instead of 10000" in answer({"source": source.side, "target": target.side})["error"]
    assert target.get() == b"theirs"


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = Store(str(tmp_path / "old"), {}, None), Store(str(tmp_path / "new"), {}, None)
    source.put(DATA)

    def full(_: str, to: str) -> None:
        Path(to).write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(copy_task.shutil, "copyfile", full)
    with pytest.raises(OSError, match="the disk is full"):
        answer({"source": source.side, "target": target.side})
    assert list((tmp_path / "new" / "data").iterdir()) == []
