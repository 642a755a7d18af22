"""Import into a folder with overlays and Defaults, as somebody sees it who runs it."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from cli_runs import catalog, namespace, reconciler, table, write

DEFAULTS = (
    "---\napiVersion: reconciler.lance/v1\nkind: Defaults\nmetadata: {catalog: lake}\nspec:\n"
    "  properties: {tier: gold}\n  protect: true\n"
)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """`prod` differs from the base, in what its overlay says and in what it does not."""
    (tmp_path / "m/overlays/prod").mkdir(parents=True)
    columns = "[{name: id, type: int64}, {name: email, type: string}]"
    write(tmp_path / "m", catalog(), namespace("a"), table("a", "t", schema=columns), table("a", "u"))
    patch = catalog(path="./prod") + table("a", "t", schema="[{name: email, type: string}, {name: score, type: int32}]")
    write(tmp_path / "m/overlays/prod", patch)
    actual = patch.replace("int32", "int64") + namespace("a") + table("a", "u", schema=columns) + table("a", "new")
    write(tmp_path, actual, name="actual.yaml")
    assert reconciler(tmp_path, "apply", "actual.yaml", "--yes").code == 0
    return tmp_path


def test_only_the_overlay_of_the_environment_is_written(live: Path) -> None:
    base, before = (live / "m/m.yaml").read_text(), (live / "m/overlays/prod/m.yaml").read_text()
    plan = reconciler(live, "plan", "m").out
    run = reconciler(live, "import", "m", "-o", "m", "--env", "prod")
    assert run.out == "updated m/overlays/prod/m.yaml\nwrote m/overlays/prod/lake/a.yaml\n", run.err
    assert "share `spec.schema` at m/m.yaml:" in run.err
    assert "note: 1 new object is in m/overlays/prod, for prod only" in run.err
    assert (live / "m/overlays/prod/m.yaml").read_text() == before.replace("int32", "int64")
    assert (live / "m/m.yaml").read_text() == base
    assert reconciler(live, "plan", "m").out == plan
    planned = reconciler(live, "plan", "m", "--env", "prod")
    assert planned.out.count("column ") == planned.out.count("column email"), planned.out


def test_nothing_to_do_is_said_only_when_the_files_say_what_is_live(live: Path) -> None:
    assert reconciler(live, "import", "m", "-o", "m", "--env", "prod").code == 0
    run = reconciler(live, "import", "m", "-o", "m", "--env", "prod")
    assert (run.code, run.out) == (0, "")
    assert "warning: lake:a.u is not as m/m.yaml:" in run.err
    assert "nothing to do" not in run.err
    last = "nothing was written to m: what differs from live is told above and stays as it is\n"
    assert run.err.endswith(last)


def test_defaults_that_are_not_live_yet(live: Path) -> None:
    write(live / "m", DEFAULTS.removeprefix("---\n"), name="defaults.yaml")
    (live / "m/overlays/prod/m.yaml").unlink()
    write(live / "m", catalog(path="./prod"))
    run = reconciler(live, "import", "m", "-o", "m")
    assert (run.code, run.out) == (0, "wrote m/lake/a.yaml\n"), run.err
    text = (live / "m/lake/a.yaml").read_text()
    assert ("tier" in text, "protect" in text) == (False, False)
    note = "note: lake:a.new and 2 more do not have live what Defaults give, and the next apply sets it: "
    assert note + "properties.tier comes from Defaults at m/defaults.yaml:5:16 (3 objects), protect" in run.err
    assert "nothing was written to m" in reconciler(live, "import", "m", "-o", "m").err
    applied = reconciler(live, "apply", "m", "--yes")
    assert applied.code == 0, applied.out
    assert reconciler(live, "import", "m", "-o", "m").err.endswith("nothing to do: the files in m say what is live\n")


def test_a_folder_of_one_environment_alone(live: Path) -> None:
    """It has no overlays, and nobody shares it: imported again, it is brought up to date as any other."""
    for _ in range(2):
        run = reconciler(live, "import", "m", "-o", "alone", "--env", "prod")
        assert run.code == 0, run.err
    assert run.err == "nothing to do: the files in alone say what is live\n"
    assert reconciler(live, "plan", "alone", "--detailed-exitcode").code == 0
    (live / "alone/lake/a.yaml").write_text((live / "alone/lake/a.yaml").read_text().replace("score", "scope"))
    again = reconciler(live, "import", "m", "-o", "alone", "--env", "prod")
    assert again.out == "updated alone/lake/a.yaml\n", again.err
    assert reconciler(live, "plan", "alone", "--detailed-exitcode").code == 0


LEAVES = "---\napiVersion: reconciler.lance/v1\nkind: Defaults\nmetadata: {catalog: lake}\nspec:\n"


@pytest.fixture
def robbed(tmp_path: Path) -> Path:
    """Defaults of a table give a config key, and leave a property to others. Others took that key and another one."""
    (tmp_path / "m").mkdir()
    defaults = LEAVES + "  config: {given: '1'}\n  ignoreDifferences: [properties.theirs]\n"
    write(tmp_path / "m", catalog(), table("t", spec="config: {own: '1'}"), defaults)
    assert reconciler(tmp_path, "apply", "m", "--yes").code == 0
    (uri,) = tmp_path.glob("lake/*t.lance")
    lance.dataset(str(uri)).delete_config_keys(["own", "given"])
    return tmp_path


def test_what_others_took_away_is_left_to_them_with_what_defaults_leave(robbed: Path) -> None:
    """But for what Defaults give: that is set again."""
    run = reconciler(robbed, "import", "m", "-o", "m")
    assert "  ignoreDifferences: [properties.theirs, config.own]\n" in (robbed / "m/m.yaml").read_text(), run.err
    assert "note: others took away what we had set: config own of lake:t; `ignoreDifferences` leaves it" in run.err
    assert "the next apply sets it: config.given" in run.err
    planned = reconciler(robbed, "plan", "m")
    assert 'config given = "1"' in planned.out
    assert "own" not in planned.out.replace("not our own", "")


def test_a_new_document_has_what_defaults_leave_to_others(robbed: Path) -> None:
    file = robbed / "m/m.yaml"
    kept = [d for d in file.read_text().split("---\n") if "kind: Table" not in d]
    file.write_text("---\n".join(kept))
    run = reconciler(robbed, "import", "m", "-o", "m")
    text = (robbed / "m/lake/root-tables.yaml").read_text()
    assert "ignoreDifferences: [properties.theirs, config.own]\n" in text, run.err
    assert "the next apply sets it: config.given" in run.err


def test_what_defaults_leave_to_others_is_written_as_it_is_meant(robbed: Path) -> None:
    """With what is no reference in it; and nothing is said of what they leave already."""
    file = robbed / "m/m.yaml"
    before = file.read_text()
    file.write_text(before.replace("[properties.theirs]", "['indexes.i$${x}y']"))
    run = reconciler(robbed, "import", "m", "-o", "m")
    assert "  ignoreDifferences: ['indexes.i$${x}y', config.own]\n" in file.read_text(), run.err
    assert reconciler(robbed, "validate", "m").code == 0
    defaults = before.replace("[properties.theirs]", "[config.own]")
    file.write_text("---\n".join(d for d in defaults.split("---\n") if "kind: Table" not in d))
    run = reconciler(robbed, "import", "m", "-o", "m")
    assert "others took away" not in run.err
    assert "ignoreDifferences" not in (robbed / "m/lake/root-tables.yaml").read_text()


def test_a_new_table_that_defaults_would_make_wrong_is_left_out(robbed: Path) -> None:
    file = robbed / "m/m.yaml"
    text = file.read_text().replace("[properties.theirs]", "[schema.id.x.comment]")
    file.write_text("---\n".join(d for d in text.split("---\n") if "kind: Table" not in d))
    run = reconciler(robbed, "import", "m", "-o", "m")
    assert "lake:t is left out: with what Defaults give it would be wrong: the path 'schema.id.x.comment'" in run.err
    assert reconciler(robbed, "validate", "m").code == 0


def test_a_list_that_environments_share_is_left_and_the_rest_is_not(tmp_path: Path) -> None:
    """The overlay cannot have one path more than the base. What else differs is written all the same."""
    (tmp_path / "m/overlays/prod").mkdir(parents=True)
    write(tmp_path / "m", catalog(), table("t", spec="config: {own: '1', k: '1'}\n  ignoreDifferences: [config.x]"))
    write(tmp_path / "m/overlays/prod", catalog(path="./prod"))
    assert reconciler(tmp_path, "apply", "m", "--env", "prod", "--yes").code == 0
    (uri,) = tmp_path.glob("prod/*t.lance")
    lance.dataset(str(uri)).update_config({"k": "2"})
    lance.dataset(str(uri)).delete_config_keys(["own"])
    run = reconciler(tmp_path, "import", "m", "-o", "m", "--env", "prod")
    assert "config own of lake:t; `ignoreDifferences` could not be given that" in run.err
    planned = reconciler(tmp_path, "plan", "m", "--env", "prod")
    assert "our record of what we set differs: config own is no longer ours\n" in planned.out
    assert "config k" not in planned.out
    again = reconciler(tmp_path, "import", "m", "-o", "m", "--env", "prod")
    assert (again.out, "could not be given that" in again.err) == ("", True)
