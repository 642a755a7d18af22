"""Bad luck between us and Glue: lost answers, a busy service, errors of every name."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

import pytest
from catalog.glue_support import Account, account, apply, found, glue_client, glue_server, scanned
from servers.glue_moto import GlueServer
from servers.proxy import Fault, Proxy, answer, cut_answer, cut_before, delay, reset_after, reset_before, truncate

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.fence import fenced
from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_errors import to_catalog_error
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.engine.execute import execute
from reconciler.engine.observe import observe
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Gap, Present
from reconciler.model.report import Report
from reconciler.model.state import Marks

__all__ = ["account", "glue_client", "glue_server"]

OURS = Marks("team-a")
HERE = Source("m.yaml", 1, 1)
WRITES = ["CreateDatabase", "CreateTable", "UpdateDatabase", "UpdateTable", "DeleteTable", "DeleteDatabase"]


@pytest.fixture(scope="module")
def proxy(glue_server: GlueServer) -> Iterator[Proxy]:
    with Proxy(glue_server.endpoint) as made:
        yield made


@pytest.fixture
def behind(account: Account, proxy: Proxy) -> EntryCatalog:
    """The catalog, with the proxy in between."""
    proxy.forget()
    return account.connect(endpoint=proxy.endpoint)


def desired(*tables: str, absent: bool = False, note: str = "") -> Desired:
    options: dict[str, object] = {}
    spec = CatalogSpec("lake", "glue", options, Management(owner="team-a"), HERE)
    fields = (Field("id", parse_type("int64")),)
    properties = {"note": note} if note else {}
    wanted = {("db", t): DesiredTable("lake", ("db", t), HERE, properties, None, fields, absent=absent) for t in tables}
    home = DesiredNamespace("lake", ("db",), HERE, properties, absent=absent, allow=("drop_namespace",))
    return Desired({"lake": spec}, {"lake": {("db",): home}}, {"lake": wanted})


def run(catalog: EntryCatalog, wanted: Desired) -> Report:
    snapshot = observe(catalog, scope_of(wanted, "lake"))
    plan = make_plan(wanted, {"lake": snapshot}, {"lake": catalog.capabilities}, PlanOptions())
    assert [s.blocked_by or s.verdict for s in plan.steps if s.verdict != "allowed"] == []
    return execute(plan, {"lake": catalog}, sleep=lambda seconds: None)


LOST = {"cut": cut_answer, "reset": reset_after, "truncated": truncate, "503": answer(503, forward=True)}
NEVER = {"cut": cut_before, "reset": reset_before, "500": answer(500), "429": answer(429, retry_after=0)}
PASSING = {
    "truncated": truncate, "cut": cut_answer, "408": answer(408), "500": answer(500), "503": answer(503),
    "429": answer(429),
}  # fmt: skip


def each(faults: Mapping[str, Fault]) -> list[object]:
    """The first one in every run, the others in the full one."""
    return [pytest.param(f, id=n, marks=[pytest.mark.slow] if i else []) for i, (n, f) in enumerate(faults.items())]


@pytest.mark.slow
@pytest.mark.parametrize("fault", each(LOST))
def test_writes_whose_answer_is_lost_are_found_and_not_repeated(
    behind: EntryCatalog, proxy: Proxy, account: Account, fault: Fault
) -> None:
    for operation in WRITES:
        proxy.fault(fault, operation=operation)
    assert run(behind, desired("t", "u")).outcome == "applied"
    assert run(behind, desired("t", "u", note="new")).outcome == "applied"
    assert account.table()["Parameters"]["note"] == "new"
    assert account.table()["VersionId"] == "2"
    assert run(behind, desired("t", "u", absent=True)).outcome == "applied"
    assert scanned(account.connect()) == {}
    counts = {operation: proxy.count(operation=operation) for operation in WRITES}
    assert counts == {
        "CreateDatabase": 1, "CreateTable": 2, "UpdateDatabase": 1, "UpdateTable": 2, "DeleteTable": 2,
        "DeleteDatabase": 1,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("fault", each(NEVER))
def test_writes_that_never_arrived_are_sent_again(behind: EntryCatalog, proxy: Proxy, fault: Fault) -> None:
    for operation in WRITES:
        proxy.fault(fault, operation=operation)
    assert run(behind, desired("t")).outcome == "applied"
    assert run(behind, desired("t", note="new")).outcome == "applied"
    assert run(behind, desired("t", absent=True)).outcome == "applied"


def test_a_write_is_not_sent_again_once_the_turn_is_lost(account: Account) -> None:
    """Glue asked to slow down, and meanwhile another run got the lease."""
    calls = account.server.calls
    account.server.fail("CreateDatabase", "ThrottlingException")
    with (
        fenced(lambda: "the lease was lost" if calls["CreateDatabase"] else None),
        pytest.raises(CatalogError) as caught,
    ):
        apply(account.connect(), c.CreateNamespace(("db",), {}, OURS))
    assert caught.value.gave_up
    assert calls["CreateDatabase"] == 1


def test_what_cannot_be_known_is_called_unknown(behind: EntryCatalog, proxy: Proxy, account: Account) -> None:
    account.make_database(Parameters={"reconciler.owner": "team-a"})
    proxy.fault(cut_answer, operation="CreateTable")
    proxy.fault(cut_before, operation="GetTable", skip=2, times=None)
    report = run(behind, desired("t"))
    assert report.count("unknown") == 1


@pytest.mark.parametrize("fault", each(PASSING))
def test_reads_are_repeated(behind: EntryCatalog, proxy: Proxy, account: Account, fault: Fault) -> None:
    account.make_database()
    account.make_table()
    for operation in ("GetDatabases", "GetTables", "GetTable"):
        proxy.fault(fault, operation=operation, times=2)
    assert ("Table", ("db", "t")) in scanned(behind)
    assert isinstance(found(behind, "Table", ("db", "t")), Present)
    assert proxy.count(operation="GetTables") == 3


def test_max_retries_is_how_often(account: Account) -> None:
    account.make_database()
    for retries in ("0", "2"):
        account.server.forget()
        account.server.fail("GetTables", "ThrottlingException", times=None)
        seen = scanned(account.connect(max_retries=retries))
        assert isinstance(seen["Gap", ("db",)], Gap)
        assert account.server.calls["GetTables"] == 1 + int(retries)


@pytest.mark.slow
def test_connections_are_reused_and_bounded(behind: EntryCatalog, proxy: Proxy, account: Account) -> None:
    for number in range(40):
        account.make_database(f"db{number}")
    proxy.fault(delay(0.02), operation="GetTables", times=None)
    scanned(behind)
    scanned(behind)
    most = behind.capabilities.max_parallelism
    assert proxy.count(operation="GetTables") == 80
    assert 1 < proxy.most_in_flight <= most
    assert proxy.connections <= most


def test_throttling_slows_us_down(account: Account) -> None:
    account.make_database()
    account.make_table()
    catalog = account.connect()
    api: GlueApi = catalog.store._api  # type: ignore[attr-defined]
    account.server.fail("GetTable", "ThrottlingException", times=2)
    assert isinstance(found(catalog, "Table", ("db", "t")), Present)
    assert api._pace.limit == catalog.capabilities.max_parallelism // 4


@pytest.mark.parametrize(
    ("name", "status", "code", "unknown"),
    [
        ("InvalidInputException", 400, Code.INVALID_INPUT, False),
        ("ValidationException", 400, Code.INVALID_INPUT, False),
        ("ConcurrentModificationException", 400, Code.CONCURRENT_MODIFICATION, False),
        ("AccessDeniedException", 400, Code.PERMISSION_DENIED, False),
        ("UnrecognizedClientException", 400, Code.UNAUTHENTICATED, False),
        ("ExpiredTokenException", 400, Code.UNAUTHENTICATED, False),
        ("InvalidSignatureException", 400, Code.UNAUTHENTICATED, False),
        ("ThrottlingException", 400, Code.THROTTLING, False),
        ("OperationTimeoutException", 400, Code.SERVICE_UNAVAILABLE, True),
        ("ResourceNotReadyException", 400, Code.SERVICE_UNAVAILABLE, False),
        ("FederationSourceRetryableException", 400, Code.SERVICE_UNAVAILABLE, True),
        ("RequestTimeout", 400, Code.SERVICE_UNAVAILABLE, True),
        ("408", 408, Code.SERVICE_UNAVAILABLE, True),
        ("ServiceUnavailable", 503, Code.SERVICE_UNAVAILABLE, True),
        ("InternalServiceException", 500, Code.INTERNAL, True),
        ("ResourceNumberLimitExceededException", 400, Code.INTERNAL, False),
        ("GlueEncryptionException", 400, Code.INTERNAL, False),
        ("FederationSourceException", 400, Code.INTERNAL, False),
        ("AlreadyExistsException", 400, Code.NAMESPACE_ALREADY_EXISTS, False),
        ("EntityNotFoundException", 400, Code.NAMESPACE_NOT_FOUND, False),
    ],
)
def test_the_error_table(account: Account, name: str, status: int, code: Code, unknown: bool) -> None:
    """What was only refused for now is sent again (`max_retries`), everything else once."""
    account.server.fail("CreateDatabase", name, status=status, message="because", times=None)
    with pytest.raises(CatalogError) as caught:
        apply(account.connect(max_retries="1"), c.CreateNamespace(("db",), {}, OURS))
    assert (caught.value.code, caught.value.unknown_outcome) == (code, unknown)
    assert name in caught.value.message
    assert "because" in caught.value.message
    assert account.server.calls["CreateDatabase"] == (2 if code is Code.THROTTLING else 1)


def test_nobody_there(account: Account) -> None:
    catalog = account.connect(endpoint="http://127.0.0.1:9", max_retries="1")
    with pytest.raises(CatalogError) as caught:
        scanned(catalog)
    assert caught.value.code is Code.SERVICE_UNAVAILABLE
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.CreateNamespace(("db",), {}, OURS))
    assert caught.value.unknown_outcome is False


@pytest.mark.slow
def test_two_writers_of_one_table_both_get_through(account: Account) -> None:
    """Each is told when the other was quicker, and nothing of either is lost."""
    account.make_database()
    account.make_table()
    catalogs = [account.connect() for _ in range(2)]

    def write(number: int) -> None:
        for turn in range(5):
            while True:
                try:
                    apply(catalogs[number], c.UpdateTable(("db", "t"), {f"k{number}{turn}": "1"}, (), OURS))
                    break
                except CatalogError as error:
                    if error.code is not Code.CONCURRENT_MODIFICATION:
                        raise

    threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = {k for k in account.table()["Parameters"] if k.startswith("k")}
    assert keys == {f"k{n}{turn}" for n in range(2) for turn in range(5)}


def test_a_new_object_that_is_denied_for_a_moment_is_waited_for(account: Account) -> None:
    account.server.fail("GetDatabase", "EntityNotFoundException", times=2, skip=2)
    account.server.fail("GetTable", "EntityNotFoundException", times=2, skip=2)
    assert run(account.connect(), desired("t")).outcome == "applied"
    account.server.forget()
    account.glue.delete_table(CatalogId=account.id, DatabaseName="db", Name="t")
    assert ("Table", ("db", "t")) not in scanned(account.connect())
    found(account.connect(), "Table", ("db", "t"))
    assert account.server.calls["GetTable"] == 1, "only what this process has made is asked for again"


@pytest.mark.parametrize("error", [RecursionError("deep"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")])
def test_an_answer_to_a_write_that_cannot_be_read_leaves_it_open(error: Exception) -> None:
    told = to_catalog_error(error, "create x", write=True)
    assert (told.unknown_outcome, told.code) == (True, Code.SERVICE_UNAVAILABLE)
    assert "utf-8" not in told.message
