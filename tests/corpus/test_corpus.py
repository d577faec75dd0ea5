"""The fixed part of the corpus: what Triton prints is read and printed back byte for byte, and given back to Triton.

Each (entry, compute capability) that kernels.json marks as fixed is compiled here, without torch and without a GPU, and
checked with HEBE_BINARY. The whole corpus is tests/corpus/full.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import check
import compile as corpus_compile
import corpus
import pytest
import workers

CHOSEN = [(entry, arch) for entry in corpus.entries() for arch in entry.fixed]
BUILD = Path(os.environ.get("HEBE_CORPUS_BUILD", corpus_compile.BUILD)).resolve()


@pytest.fixture(scope="session")
def outcomes(request):
    """(failure to compile or to be checked, record) by (id, arch), of those that this session's tests ask for."""
    asked = [item.callspec.params["record"] for item in request.session.items if hasattr(item, "callspec")
             and "record" in item.callspec.params]
    chosen = [(entry, arch) for entry, arch in CHOSEN if (entry, arch) in asked]
    for package in corpus.PACKAGES:
        if corpus._version(package) == "absent":
            pytest.fail(f"{package} is not installed; scripts/install --tests installs it")
    said = []
    failures = corpus_compile.compile_all(chosen, BUILD, jobs=2, say=said.append)
    made = {(entry.id, arch): (failures.get(f"{entry.id} sm_{arch}"), None) for entry, arch in chosen}
    for arch in sorted({arch for _, arch in chosen}):
        entries = [entry for entry, wanted in chosen if wanted == arch and made[entry.id, arch][0] is None]
        run = functools.partial(check.run_job, arch, BUILD, check.program())
        for entry, record, error in workers.results(entries, corpus_compile.start, (arch, BUILD), run, 2, 240):
            made[entry.id, arch] = (error, record)
    return made


@pytest.fixture
def record(outcomes, request):
    entry, arch = request.param
    failure, made = outcomes[entry.id, arch]
    assert failure is None, failure
    return made


fixed = pytest.mark.parametrize("record", CHOSEN, indirect=True, ids=[f"{entry.id}-sm_{arch}" for entry, arch in CHOSEN])


def test_the_fixed_part_is_of_the_promised_size():
    assert len({entry.function for entry, _ in CHOSEN}) >= 40
    assert len({entry.function for entry, arch in CHOSEN if arch == 90 and not entry.id.startswith("ours.")}) >= 40
    assert {arch for _, arch in CHOSEN} == {80, 90, 100}


def test_the_corpus_is_of_the_promised_size():
    entries = corpus.entries()
    foreign = {entry.function for entry in entries if not entry.id.startswith("ours.")}
    assert len(foreign) >= 150 and {function.split(".")[0] for function in foreign} == {"liger_kernel", "flag_gems", "fla"}


@fixed
def test_printed_back_byte_for_byte(record):
    assert record.not_printed == [] and record.dumps == 6


@fixed
def test_printed_from_its_structure_byte_for_byte(record):
    assert record.not_structural == []


@fixed
def test_fed_back_to_triton_gives_the_same_ptx(record):
    assert record.other_ptx == [] and record.refed == 3


@fixed
def test_every_operation_made_anew_gives_the_same_ptx(record):
    assert record.not_remade == []


@fixed
def test_is_understood_and_well_formed(record):
    assert record.not_understood == []


def test_reading_and_printing_take_at_most_a_hundredth_of_tritons_compile_time(outcomes):
    ratios = {f"{record.id} sm_{record.arch}": record.hebe_seconds / record.triton_seconds for _, record in outcomes.values() if record}
    assert max(ratios.values()) <= 0.01, max(ratios.items(), key=lambda item: item[1])
