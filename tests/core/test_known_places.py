"""Which locations of a stranger's manifests are looked at."""

from __future__ import annotations

import pytest
from test_planning_rules import SPACE, ns, plan, steps, table

from reconciler.core.known_places import is_known
from reconciler.core.planner import scope_of
from reconciler.model.desired import CatalogSpec, Desired, Management
from reconciler.model.diagnostic import Source
from reconciler.model.plan import STRANGE_LOCATION

HERE = Source("here.yaml")


def glue(**options: object) -> CatalogSpec:
    return CatalogSpec("lake", "glue", options, Management(), HERE)


LAKE = glue(root="s3://acme-lake/prod")


@pytest.mark.parametrize(
    "location",
    ["s3://acme-lake/prod/x", "s3a://acme-lake/prod/n/t.lance/", "s3://acme-lake/prod/a%20b"],
)
def test_below_the_root(location: str) -> None:
    assert is_known(location, LAKE, ())
    assert is_known(location, glue(root="s3://acme-lake/prod/"), ())
    assert not is_known(location, glue(root="${env:ROOT}"), ())
    assert not is_known(location, glue(), ())


@pytest.mark.parametrize(
    "location",
    [
        "/etc",
        "file:///etc",
        "goosefs://evil/prod/x",
        "abfss://c@evil/acme-lake/prod/x",
        "hf://datasets/evil",
        "s3://evil/prod/x",
        "s3://acme-lake/production/x",
        "s3://acme-lake/x",
        "s3://acme-lake",
        "s3://evil/../acme-lake/prod/x",
        "s3://acme-lake/other/../prod/x",
        "s3:///acme-lake/prod/x",
        "s3://acme-lake/prod/../other/x",
        "s3://acme-lake/prod/%2e%2e/other/x",
        "s3://acme-lake/prod/a%2f..%2f..%2fx",
        "s3://acme-lake/prod/..\\x",
        "s3://acme-lake/prod//x",
        "s3://acme-lake/prod/.\t./x",
        "s3://acme-lake@evil/prod/x",
        "gs://acme-lake/prod/x",
    ],
)
def test_elsewhere(location: str) -> None:
    assert not is_known(location, LAKE, ())
    assert not is_known(location, LAKE, ["s3://acme-lake/prod/y", "/data/lake/t"])
    assert is_known(location, LAKE, [location]), "unless the manifests that are trusted have it"


def test_beside_another_table() -> None:
    known = ["s3://other/team/t", "/data/lake/t", "s3://bucket", "/top"]
    for beside in ("s3://other/team/u", "s3://other/team/deep/u", "/data/lake/u", "file:///data/lake/u"):
        assert is_known(beside, glue(), known), beside
    for away in ("s3://other/u", "/data/u", "/data/lake/../u", "file:///data/lake/../../etc", "s3://bucket2/x", "/etc"):
        assert not is_known(away, glue(), known), away


def test_everything_is_no_place() -> None:
    for root in ("/", "file:///", "./lake", ""):
        assert not is_known("/etc/x", glue(root=root), ["/x"])


def test_a_dir_catalog_takes_nothing_from_outside_anyway() -> None:
    assert is_known("sub/t.lance", CatalogSpec("lake", "dir", {"path": "./lake"}, Management(), HERE), ())


def test_what_is_held_back_is_not_looked_at_and_not_made() -> None:
    held = table("n", "t", location="/etc", held_back="not there")
    lake = Desired({"lake": glue()}, {}, {"lake": {("n", "t"): held}})
    assert scope_of(lake, "lake").locations == {}
    made = plan([ns("n"), held, table("n", "u")], {("n",): SPACE})
    assert steps(made) == [("declare_table", ("n", "u")), ("create_dataset", ("n", "u"))]
    assert {(s.blocked_by, "not there" in s.reason) for s in made.steps if s.key.ident == ("n", "t")} == {
        (STRANGE_LOCATION, True)
    }
