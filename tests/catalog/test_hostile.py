"""Hostile servers on every catalog type: each run ends, within bounds of time, memory and requests, and nothing is ever
concluded to be absent from what they say. One command reads a server of each type, side by side."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from servers.hostile import BEHAVIOURS, LONG, Behaviour, Hostile, endless_bucket
from servers.tls import Authority, authority

from reconciler.catalog import paging
from reconciler.catalog.http_transport import Timeouts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_runs import Run, command, environment, process, reconciler

__all__ = ["authority"]
KINDS = ("rest", "iceberg", "unity", "glue")
QUICK = ("duplicate_keys", "many_keys", "long_error", "always_new_token", "gzip_bomb", "drip_body")
SECONDS = 60.0
"""For one command, with time-outs of a second: an upper bound for a busy machine."""
MOST_REQUESTS = 400
MOST_MEMORY = 4 * 250 << 20
"""Of what Python allocates, for four answers of 64 MB at most."""
NO_RETRY = {"max_retries": 0}


def document(server: Hostile, folder: Path, **spec: object) -> dict[str, Any]:
    root = {} if server.kind == "rest" else {"root": str(folder / "data")}
    body = {**server.options, "max_retries": 1, **root, "management": {"owner": "team"}, **spec}
    return _document("Catalog", {"name": server.kind}, body)


def _document(kind: str, metadata: object, spec: object) -> dict[str, Any]:
    return {"apiVersion": "reconciler.lance/v1", "kind": kind, "metadata": metadata, "spec": spec}


def write(folder: Path, servers: Sequence[Hostile], **spec: object) -> None:
    documents = []
    for server in servers:
        top = ["lake"] if server.kind in ("iceberg", "unity") else []
        documents += [
            document(server, folder, **spec),
            _document("Namespace", {"catalog": server.kind, "id": [*top, "n"]}, {}),
            _document(
                "Table",
                {"catalog": server.kind, "id": [*top, "n", "t"]},
                {"schema": [{"name": "id", "type": "int64"}]},
            ),
        ]
    (folder / "m.yaml").write_text(yaml.safe_dump_all(documents))


@contextmanager
def hostile(name: str, kinds: Sequence[str] = KINDS, **more: Any) -> Iterator[list[Hostile]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Hostile(kind, BEHAVIOURS[name], **more)) for kind in kinds]


def timed(folder: Path, *arguments: str) -> Run:
    began = time.monotonic()
    run = reconciler(folder, *arguments)
    assert time.monotonic() - began < SECONDS
    return run


def param(name: str) -> object:
    return pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("name", [param(name) for name in BEHAVIOURS])
def test_a_hostile_listing_is_a_gap(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a complete listing, so no step is allowed."""
    if name == "always_new_names":
        monkeypatch.setattr(paging, "MOST_PAGES", 120)
    if name in LONG:
        tracemalloc.start()
    try:
        with hostile(name) as servers:
            write(tmp_path, servers, **NO_RETRY)
            run = timed(tmp_path, "plan", "m.yaml", "--prune", "--format", "json")
        peak = tracemalloc.get_traced_memory()[1] if name in LONG else 0
    finally:
        tracemalloc.stop()
    assert run.code == 0, run.err
    assert len(run.out) < 100_000
    for kind, server in zip(KINDS, servers, strict=True):
        seen = run.json["catalogs"][kind]
        assert not seen["complete"], kind
        assert len(server.requests) < MOST_REQUESTS, kind
        assert name not in LONG or "64 MB are read at most" in seen["problems"][0]["message"], seen["problems"]
        assert name not in ("duplicate_keys", "many_keys") or "twice" in seen["problems"][0]["message"], seen[
            "problems"
        ]
    assert {step["verdict"] for step in run.json["steps"]} == {"blocked"}
    assert peak < MOST_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("name", ["silent", "drip_head", "drip_interim", "endless_100", "gzip_bomb", "duplicate_keys"])
def test_a_server_that_is_hostile_from_the_start_fails_the_run(tmp_path: Path, name: str) -> None:
    with hostile(name, everywhere=True) as servers:
        write(tmp_path, servers)
        run = timed(tmp_path, "plan", "m.yaml", "--format", "json")
    assert run.code == 1
    for kind, server in zip(KINDS, servers, strict=True):
        assert f"catalog {kind} cannot be read" in run.err
        assert len(server.requests) <= 2, "asked for once more than max_retries at most"


@pytest.mark.slow
def test_a_handshake_that_never_ends(tmp_path: Path) -> None:
    with hostile("silent", silent_handshake=True) as servers:
        write(tmp_path, servers)
        run = timed(tmp_path, "plan", "m.yaml", "--format", "json")
    assert run.code == 1
    assert run.err.count("connect_timeout: 1 s") == 3, run.err  # Glue says it in the words of AWS.
    assert [server.connections for server in servers] == [2] * 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drip_body", "long_json", "endless_100"])
def test_over_tls(tmp_path: Path, name: str, authority: Authority) -> None:
    kinds = ("rest", "iceberg", "unity")
    with hostile(name, kinds, tls=authority.server_context()) as servers:
        write(tmp_path, servers, **NO_RETRY, **{"tls.ca_file": str(authority.ca_file)})
        run = timed(tmp_path, "plan", "m.yaml", "--prune", "--format", "json")
    assert run.code == 0, run.err
    assert not any(seen["complete"] for seen in run.json["catalogs"].values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rest", "iceberg"])
def test_namespaces_without_end(tmp_path: Path, kind: str) -> None:
    """Each holds one: the scan does not follow for ever."""
    with Hostile(kind, BEHAVIOURS["nothing"], bottomless=1) as server:
        write(tmp_path, [server], **NO_RETRY)
        run = timed(tmp_path, "plan", "m.yaml", "--format", "json")
    assert run.code == 0, run.err
    assert not run.json["catalogs"][kind]["complete"]
    assert "nested deeper than 64 levels" in " ".join(p["message"] for p in run.json["catalogs"][kind]["problems"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rest", "iceberg", "glue"])
def test_a_tree_without_end(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds three: the scan is over long before it is deep, and nothing is concluded from it."""
    monkeypatch.setattr(paging, "MOST_NAMESPACES", 40)
    with Hostile(kind, BEHAVIOURS["nothing"], bottomless=3) as server:
        write(tmp_path, [server], **NO_RETRY, **({"catalogs": True} if kind == "glue" else {}))
        run = timed(tmp_path, "plan", "m.yaml", "--prune", "--format", "json")
        requests = len(server.requests)
    assert run.code == 0, run.err
    assert not run.json["catalogs"][kind]["complete"]
    assert "more than 40 namespaces" in str(run.json["catalogs"][kind]["problems"])
    assert not [step for step in run.json["steps"] if step["verdict"] == "allowed"]
    assert requests < 40 * 20


# the whole run


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["plan", "apply", "drift", "status", "import"])
def test_timeout_bounds_the_reading_of_catalogs(tmp_path: Path, verb: str) -> None:
    """With times per call that alone would be a minute and more."""
    arguments = {"apply": ["--yes"], "import": ["-o", "out"]}.get(verb, [])
    with hostile("drip_body", everywhere=True) as servers:
        addresses = [server.address for server in servers[:3]]
        write(tmp_path, servers[:2], read_timeout=60000)
        first = (tmp_path / "m.yaml").read_text()
        write(tmp_path, servers[2:], read_timeout=60)
        (tmp_path / "m.yaml").write_text(f"{first}---\n{(tmp_path / 'm.yaml').read_text()}")
        run = timed(tmp_path, verb, "m.yaml", "--timeout", "1.5", *arguments)
    assert run.code == 1
    assert "the --timeout of 1.5 s is over" in run.err
    asked = {kind: len(server.requests) for kind, server in zip(KINDS, servers, strict=True)}
    assert set(asked.values()) == ({0, 1} if verb == "import" else {1}), "import reads one after the other"
    for kind, call in zip(KINDS, (*addresses, "list the databases"), strict=True):
        if asked[kind]:
            assert f"catalog {kind} cannot be read" in run.err
            assert call in run.err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["plan", "apply", "drift", "status"])
@pytest.mark.parametrize("what", ["parquet", "lance", "migration"])
def test_timeout_bounds_what_else_a_plan_looks_at(tmp_path: Path, what: str, verb: str) -> None:
    """The store of a source, or of the table that rows are moved from, takes the call and never answers."""
    with Hostile("rest", BEHAVIOURS["silent"], everywhere=True) as store:
        env = {"AWS_ENDPOINT": store.address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "x",
               "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}  # fmt: skip
        spec: dict[str, Any] = {"schema": [{"name": "id", "type": "int64"}]}
        if what == "migration":
            spec["migration"] = {"from": {"catalog": "old", "id": ["t"]}}
        else:
            spec["data"] = {"source": {"format": what, "path": "s3://bucket/x"}, "mode": "once"}
        documents = [
            _document("Catalog", {"name": name}, {"type": "dir", "management": {"owner": "team"}, "path": path})
            for name, path in (("lake", "./lake"), ("old", "s3://bucket/old"))
        ]
        documents += [_document("Table", {"catalog": "lake", "id": [name]}, spec) for name in ("t", "u")]
        (tmp_path / "m.yaml").write_text(yaml.safe_dump_all(documents))
        began = time.monotonic()
        more = ["--yes"] if verb == "apply" else []
        run = process(tmp_path, verb, "m.yaml", "--catalog", "lake", "--timeout", "8", *more, env=env)
        assert time.monotonic() - began < SECONDS
    assert run.code == 1
    name = "the table that is moved to" if what == "migration" else "the source of table"
    assert f"error: {name} lake:t cannot be read" in run.err
    assert "has not answered, the --timeout of 8 s is over" in run.err


@pytest.mark.slow
def test_memory_of_the_whole_process(tmp_path: Path) -> None:
    """What Python does not allocate counts as well: against the same run with a short answer."""
    most = {}
    for name in ("nothing", "gzip_bomb", "long_chunks", "many_values", "slow_charset"):
        with hostile(name) as servers:
            write(tmp_path, servers, **NO_RETRY)
            child = subprocess.Popen(
                command("plan", "m.yaml", "--format", "json"),
                cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            most[name] = peak(child)
    assert max(most.values()) < most["nothing"] + (MOST_MEMORY >> 20), most


def peak(child: subprocess.Popen[bytes]) -> int:
    """The most MB that it had, until it ended. Not `ru_maxrss`: it counts what the parent had at the start."""
    most, end = 0, time.monotonic() + SECONDS
    while child.poll() is None:
        if time.monotonic() > end:
            child.kill()
        with contextlib.suppress(OSError):
            found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{child.pid}/status").read_text())
            most = max(most, int(found[1]) >> 10 if found else 0)
        time.sleep(0.01)
    assert most > 0, "nothing was measured"
    return most


# other transports


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["silent", "drip_head", "drip_body", "gzip_bomb", "long_json", "endless_100", "deep_json", "nan", "wrong_type"],
)
def test_a_hostile_token_endpoint(tmp_path: Path, name: str) -> None:
    with hostile(name, ["rest"], everywhere=True) as (tokens,), hostile("silent", KINDS[:2]) as servers:
        write(tmp_path, servers, credential="me:secret-canary", oauth2_server_uri=f"{tokens.address}/token")
        run = timed(tmp_path, "plan", "m.yaml", "--format", "json")
    assert run.code == 1
    assert len(tokens.requests) <= 4
    assert [server.requests for server in servers] == [[], []]
    assert "secret-canary" not in run.out + run.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["silent", "drip_body", "drip_head", "long_chunks", "gzip_bomb", "endless_100"])
@pytest.mark.parametrize("source", ["container", "instance", "web_identity", "role"])
def test_a_hostile_endpoint_of_aws_credentials(
    tmp_path: Path, source: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore would read any of them for any time."""
    monkeypatch.setattr("reconciler.catalog.glue_session._METADATA", Timeouts(1, 1))
    role = "arn:aws:iam::123456789012:role/x"
    (tmp_path / "token").write_text("a-token-of-the-pod")
    with (
        Hostile("rest", BEHAVIOURS[name], everywhere=True) as keys,
        Hostile("glue", BEHAVIOURS["silent"], everywhere=True) as glue,
    ):
        spec = glue.options | {"max_retries": 0, "root": str(tmp_path / "data")}
        if source == "role":
            spec["assume_role_arn"] = role
        else:
            del spec["access_key_id"], spec["secret_access_key"]
        (tmp_path / "m.yaml").write_text(yaml.safe_dump(_document("Catalog", {"name": "lake"}, spec)))
        env = {
            "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{keys.address}/keys"},
            "instance": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": keys.address},
            "web_identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": role},
            "role": {},
        }[source] | {"AWS_ENDPOINT_URL_STS": keys.address, "AWS_MAX_ATTEMPTS": "1", "HOME": str(tmp_path)}
        began = time.monotonic()
        run = reconciler(tmp_path, "plan", "m.yaml", env=env)
    assert time.monotonic() - began < SECONDS
    assert run.code == 1
    assert "catalog lake cannot be read" in run.err
    assert "Traceback" not in run.err
    assert 1 <= len(keys.requests) <= 4
    assert glue.requests == []
    assert name != "long_chunks" or source == "instance" or "1 MB are read at most" in run.err, run.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "behaviour",
    [*(BEHAVIOURS[n] for n in ("silent", "drip_head", "drip_body", "endless_100", "long_chunks")), endless_bucket],
    ids=["silent", "drip_head", "drip_body", "endless_100", "long_chunks", "endless_pages"],
)
def test_a_hostile_object_store(tmp_path: Path, behaviour: Behaviour) -> None:
    """obstore and lance have time-outs of their own, set with `storage.*`; `--timeout` ends the run before them."""
    with Hostile("rest", behaviour, everywhere=True) as server:
        spec = {"type": "dir", "path": "s3://bucket/lake", "storage.aws_endpoint": server.address,
                "storage.allow_http": "true", "storage.aws_access_key_id": "a", "storage.aws_secret_access_key": "b",
                "storage.aws_region": "us-east-1", "management": {"owner": "team"}}  # fmt: skip
        (tmp_path / "m.yaml").write_text(yaml.safe_dump(_document("Catalog", {"name": "lake"}, spec)))
        began = time.monotonic()
        with (tmp_path / "err").open("w") as err:
            child = subprocess.Popen(
                command("plan", "m.yaml", "--timeout", "2"),
                cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=err,
            )  # fmt: skip
            most = peak(child)
    assert time.monotonic() - began < SECONDS
    assert child.returncode == 1, (tmp_path / "err").read_text()
    assert "catalog lake cannot be read" in (tmp_path / "err").read_text()
    assert most < MOST_MEMORY >> 20
    # obstore follows pages by itself: for those the time is the only bound.
    assert behaviour is endless_bucket or len(server.requests) < MOST_REQUESTS
