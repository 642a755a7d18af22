"""A canary in every secret option, however it is written: it is in no output, on no error path, at no log level.

The error paths are those where a library really repeats an option in its message; for each, the same run with the
redactor switched off shows the canary, so that none of these tests can go blind.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import boto3
import pytest
from cli_runs import Run, catalog, environment, namespace, process, reconciler, table, write

from reconciler.engine.redact import MASK, Redactor

pytestmark = pytest.mark.slow

CANARIES = {
    "storage.aws_access_key_id": "CANARYidAAAA1111",
    "storage.aws_secret_access_key": 'CANARY/sec+ret="q"\\x2222',
    "storage.aws_session_token": "CANARYtok en%3333",
}
IN_URL = "CANARYpw4444"
BAD_VALUE = "CANARYnumber5555"
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


def manifest(
    folder: Path, how: str, endpoint: str, path: str = "s3://lake/root", timeout: str = "30s"
) -> dict[str, str]:
    """Writes m.yaml and gives the environment it needs."""
    env: dict[str, str] = {}
    options: dict[str, str] = {}
    for number, (key, value) in enumerate({**CANARIES, "storage.timeout": timeout}.items()):
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
        for value in (*CANARIES.values(), IN_URL, BAD_VALUE):
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
    journal = next((tmp_path / ".reconciler/journal").iterdir())
    for file in ("p.json", "r.json", journal):
        runs += [reconciler(tmp_path, "show", file, "--format", f) for f in ("markdown", "sarif", "junit")]
    assert [r.code for r in runs] == [0] * len(runs), runs
    assert (tmp_path / "live/lake/catalog.yaml").exists()
    assert list((tmp_path / ".reconciler/journal").iterdir())
    assert_clean(tmp_path, *runs)


def test_a_plan_made_from_literals_says_which_variables_it_needs(tmp_path: Path, s3: str) -> None:
    env = manifest(tmp_path, "literal", s3, "s3://lake/elsewhere")
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env=env).code == 0
    without = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env=env)
    assert without.code == 1
    assert "RECONCILER_LAKE_STORAGE_AWS_" in without.err
    written = {**CANARIES, "storage.timeout": "30s", "storage.client_max_retries": "0"}
    given = {f"RECONCILER_LAKE_{k.upper().replace('.', '_')}": v for k, v in written.items()}
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env=env | given).code == 0


def in_trouble(folder: Path, how: str, trouble: str, s3: str) -> dict[str, str]:
    """The environment for a manifest that cannot be planned."""
    dead = dead_port().replace("http://", f"http://user:{IN_URL}@")
    endpoint = {"dead port": dead, "no bucket": s3, "broken endpoint": f"http://[{IN_URL}"}.get(trouble, s3)
    path = "s3://missing/root" if trouble == "no bucket" else "s3://lake/root"
    return manifest(folder, how, endpoint, path, BAD_VALUE if trouble == "bad value" else "30s")


REPEATED = [("env", "dead port"), ("file", "bad value"), ("literal", "bad value"), ("default", "bad value")]
"""Errors in which the library repeats the canary."""


@pytest.mark.parametrize(("how", "trouble"), [*REPEATED, ("literal", "no bucket"), ("file", "broken endpoint")])
def test_on_error_paths(tmp_path: Path, s3: str, how: str, trouble: str) -> None:
    env = in_trouble(tmp_path, how, trouble, s3)
    runs = [
        process(tmp_path, "plan", "m.yaml", "-o", "p.json", *LOUD, env=env | NOISY),
        reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json", "--format", "json", env=env),
        reconciler(tmp_path, "import", "c.yaml", "-o", "live", env=env),
        *(reconciler(tmp_path, "plan", "m.yaml", "--format", f, env=env) for f in ("markdown", "sarif", "junit")),
    ]
    assert {r.code for r in runs} == {1}, runs
    assert all("error: " in r.err for r in runs)
    assert_clean(tmp_path, *runs)
    if (how, trouble) in REPEATED:
        assert all(MASK in r.err for r in runs), "the library no longer repeats the option: find another error"
        assert MASK in runs[1].json["message"]
        assert all(MASK in r.out for r in runs[3:])


@pytest.mark.parametrize(("how", "trouble"), REPEATED)
def test_without_the_redactor_the_error_paths_would_leak(tmp_path: Path, s3: str, how: str, trouble: str) -> None:
    env = in_trouble(tmp_path, how, trouble, s3)
    with patch.object(Redactor, "text", lambda self, text: text):
        run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json", env=env)
    assert "CANARY" in run.err
    assert "CANARY" in (tmp_path / "r.json").read_text()


def test_a_secret_that_is_not_set_is_named_by_its_variable(tmp_path: Path) -> None:
    env = manifest(tmp_path, "unset", dead_port())
    run = reconciler(tmp_path, "plan", "m.yaml", *LOUD, env=env)
    assert run.code == 1
    assert "THIS_IS_NOT_SET" in run.err
    assert_clean(tmp_path, run)


def test_a_server_that_fails_in_the_middle(tmp_path: Path, s3: str) -> None:
    """The plan is good, then the server is gone: the error texts of the libraries go through apply."""
    env = manifest(tmp_path, "env", s3, "s3://lake/middle")
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env=env).code == 0
    gone = env | {"ENDPOINT": dead_port().replace("http://", f"http://user:{IN_URL}@")}
    gone["RECONCILER_LAKE_STORAGE_CLIENT_MAX_RETRIES"] = "0"
    arguments = ("apply", "--plan", "p.json", "--yes", "--report", "r.json")
    run = process(tmp_path, *arguments, "--timeout", "3", *LOUD, env=gone | NOISY)
    assert run.code == 1
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["outcome"] == "failed"
    assert MASK in report["message"]
    assert_clean(tmp_path, run)
    with patch.multiple(Redactor, text=lambda self, text: text, content=lambda self, text: text):
        leaky = reconciler(tmp_path, *arguments, "--timeout", "1", env=gone)
    assert IN_URL in leaky.out
