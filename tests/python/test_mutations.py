"""The faults that scripts/mutate plants still fit the code. That each is seen is for scripts/mutate itself: it compiles for minutes."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re

import pytest
from package import ROOT

_loader = importlib.machinery.SourceFileLoader("mutate", str(ROOT / "scripts" / "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", _loader))
_loader.exec_module(mutate)

TESTS = {f"{suite}.{name}" for file in (ROOT / "tests" / "unit").glob("tune_*_test.cpp")
         for suite, name in re.findall(r"^TEST(?:_F)?\((\w+),\s+(\w+)\)", file.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("mutation", mutate.MUTATIONS, ids=lambda m: m.name)
def test_a_mutation_matches_once_changes_something_and_names_a_test_that_is_there(mutation):
    text = (ROOT / mutation.file).read_text()
    assert mutate.mutated(mutation, text) != text
    assert mutation.test in TESTS


def test_there_are_the_eight_and_a_substitution_that_does_not_fit_is_no_mutation():
    assert len({m.name for m in mutate.MUTATIONS}) == len({(m.file, m.after) for m in mutate.MUTATIONS}) == 8
    one = mutate.MUTATIONS[0]
    for text in ("", 2 * one.before):
        with pytest.raises(ValueError, match=one.name):
            mutate.mutated(one, text)
