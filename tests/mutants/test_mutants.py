"""The list of mutants fits the source. Whether the tests see them takes longer: `make mutants`."""

import ast
from collections import Counter

import pytest
from run import ROOT, Mutant, mutants

MUTANTS = mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_its_text_is_there_once_and_what_it_makes_is_python(mutant: Mutant) -> None:
    changed = mutant.applied_to((ROOT / mutant.file).read_text())
    ast.parse(changed)
    assert mutant.old != mutant.new
    assert mutant.file.startswith("reconciler/")


def test_every_test_that_must_fail_exists() -> None:
    named = {test.partition("[")[0] for mutant in MUTANTS for test in mutant.tests}
    there: set[str] = set()
    for file in {test.partition("::")[0] for test in named}:
        tree = ast.parse((ROOT / file).read_text())
        there |= {f"{file}::{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert named <= there, sorted(named - there)


def test_each_has_a_name_of_its_own_and_a_test() -> None:
    assert [name for name, count in Counter(m.name for m in MUTANTS).items() if count > 1] == []
    assert [m.name for m in MUTANTS if not m.tests] == []
