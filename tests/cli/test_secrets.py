"""A canary in every secret option, however it is written: it is in no output, on no error path, at no log level."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from cli_runs import Run, catalog, environment, namespace, process, reconciler, table, write

pytestmark = pytest.mark.slow

CANARIES = {
    "storage.aws_access_key_id": "CANARYidAAAA1111",
    "storage.aws_secret_access_key": 'CANARY/sec+ret="q"\\x2222',
    "storage.aws_session_token": "CANARYtok en%3333",
}
NOISY = {"LANCE_LOG": "trace", "RUST_LOG": "trace"}
LOUD = ("--debug", "--log-level", "debug")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A real moto server on loopback, with one bucket."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        client = boto3.client(
            "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_bucket(Bucket="lake")
        yield url
    finally:
        server.kill()
        server.wait()


def dead_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def manifest(folder: Path, how: str, endpoint: str, path: str = "s3://lake/root") -> dict[str, str]:
    """Writes m.yaml and gives the environment it needs."""
    env: dict[str, str] = {}
    options: dict[str, str] = {}
    for number, (key, value) in enumerate(CANARIES.items()):
        if how == "env":
            env[f"SECRET_{number}"] = value
            options[key] = f"${{env:SECRET_{number}}}"
        elif how == "file":
            (folder / f"secret{number}").write_text(value + "\n")
            options[key] = f"${{file:{folder}/secret{number}}}"
        elif how == "default":
            options[key] = f"${{env:NOT_SET_{number}:-{value}}}"
        else:
            options[key] = value
    env |= {"ENDPOINT": endpoint, "REGION": "us-east-1"}
    options |= {"storage.aws_endpoint": "${env:ENDPOINT}", "storage.allow_http": "true"}
    options |= {"storage.client_max_retries": "0", "storage.aws_region": "${env:REGION}"}
    if how == "unset":
        options["storage.aws_access_key_id"] = "${env:THIS_IS_NOT_SET}"
    spec = {k.replace(".", "__"): v for k, v in options.items()}
    write(folder, catalog(path=path, **spec), namespace("a"), table("a", "t"))
    write(folder, catalog(path=path, **spec), name="c.yaml")
    return env


def assert_clean(folder: Path, *runs: Run) -> None:
    texts = {f"output {n}": r.out + r.err for n, r in enumerate(runs)}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("m.yaml", "c.yaml") and not path.name.startswith("secret"):
            texts[str(path)] = path.read_bytes().decode("utf-8", "replace")
    for where, text in texts.items():
        for value in CANARIES.values():
            for form in (value, value[-8:], json.dumps(value)[1:-1], repr(value)[1:-1]):
                assert form not in text, f"{where}: {form} in {text[:2000]}"


@pytest.mark.parametrize("how", ["env", "file", "literal", "default"])
def test_on_the_happy_path(tmp_path: Path, s3: str, how: str) -> None:
    env = manifest(tmp_path, how, s3, f"s3://lake/{how}")
    runs = [
        reconciler(tmp_path, "validate", "m.yaml", "--format", "json", env=env),
        reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env=env),
        reconciler(tmp_path, "plan", "m.yaml", "--format", "json", *LOUD, env=env),
        process(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json", *LOUD, env=env | NOISY),
        reconciler(tmp_path, "drift", "m.yaml", *LOUD, env=env),
        reconciler(tmp_path, "import", "c.yaml", "-o", "live", *LOUD, env=env),
        reconciler(tmp_path, "show", "p.json"),
        reconciler(tmp_path, "show", "r.json", "--format", "json"),
    ]
    assert [r.code for r in runs] == [0] * len(runs), runs
    assert (tmp_path / "live/lake.yaml").exists()
    assert list((tmp_path / ".reconciler/journal").iterdir())
    assert_clean(tmp_path, *runs)


def test_a_plan_made_from_literals_says_which_variables_it_needs(tmp_path: Path, s3: str) -> None:
    env = manifest(tmp_path, "literal", s3, "s3://lake/elsewhere")
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env=env).code == 0
    without = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env=env)
    assert without.code == 1
    assert "RECONCILER_LAKE_STORAGE_AWS_" in without.err
    given = {f"RECONCILER_LAKE_{k.upper().replace('.', '_')}": v for k, v in CANARIES.items()}
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env=env | given).code == 0


@pytest.mark.parametrize(
    ("how", "trouble"),
    [
        ("env", "dead port"),
        ("literal", "no bucket"),
        ("file", "broken endpoint"),
        ("literal", "broken endpoint"),
        ("unset", "dead port"),
    ],
)
def test_on_error_paths(tmp_path: Path, s3: str, how: str, trouble: str) -> None:
    endpoint = {"dead port": dead_port(), "no bucket": s3, "broken endpoint": "http://[::1"}[trouble]
    env = manifest(tmp_path, how, endpoint, "s3://missing/root" if trouble == "no bucket" else "s3://lake/root")
    runs = [
        process(tmp_path, "plan", "m.yaml", "-o", "p.json", *LOUD, env=env | NOISY),
        reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json", "--format", "json", env=env),
        reconciler(tmp_path, "drift", "m.yaml", *LOUD, env=env),
        reconciler(tmp_path, "import", "c.yaml", "-o", "live", env=env),
    ]
    assert {r.code for r in runs} == {1}, runs
    assert all("error: " in r.err for r in runs)
    assert_clean(tmp_path, *runs)


def test_a_server_that_fails_in_the_middle(tmp_path: Path, s3: str) -> None:
    """The plan is good, then the server is gone: the error texts of the libraries go through apply."""
    env = manifest(tmp_path, "env", s3, "s3://lake/middle")
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env=env).code == 0
    gone = env | {"ENDPOINT": dead_port()}
    run = process(tmp_path, "apply", "--plan", "p.json", "--yes", "--report", "r.json", *LOUD, env=gone | NOISY)
    assert run.code == 1
    assert json.loads((tmp_path / "r.json").read_text())["outcome"] == "failed"
    assert_clean(tmp_path, run)
