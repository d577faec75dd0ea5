"""hebe.dispatch: explicit, by HEBE_PROFILE, and what is said when there is no row. Without Arrow and without a GPU. What its
arguments may be is in test_package_dispatch_arguments.py."""

from __future__ import annotations

import ast
import json
import os
import re
import warnings

import hebe
import pytest
from package import BOARD, NO_LIBRARY, ROOT, needs_library, no_library, profile_in, python

pytestmark = needs_library


@pytest.fixture
def profile(tmp_path):
    yield profile_in(tmp_path)
    hebe.unload_profile()


def test_the_bucket_of_a_shape_is_found_by_order_and_by_name(profile):
    hebe.load_profile(profile, BOARD)
    choice = hebe.dispatch("matmul", [200, 4096], "bf16")
    assert (choice.name, choice.configuration, choice.energy_nj, choice.provenance) == ("cublaslt", {"algorithm": 3}, 1000, "measured")
    assert choice.artifact_sha256 is None and choice.shape == "m<=256,n=4096" and "(measured)" in repr(choice)
    assert hebe.dispatch("matmul", {"n": 4096, "m": 200}, "bf16") == choice
    assert hebe.dispatch("matmul", (1, 4096), "bf16").artifact_sha256 == "a" * 64
    with pytest.raises(hebe.Refused, match="has the sizes m, n"):
        hebe.dispatch("matmul", {"rows": 1}, "bf16")


def test_the_documentations_example_is_a_hit_in_the_profile_that_is_shipped():
    """Of this operation's dimensions and dtype: the tunes of matmul in evidence/."""
    (example,) = re.findall(r'^    hebe\.dispatch\((".+")\)  *#', (ROOT / "docs" / "python.md").read_text(), re.MULTILINE)
    operation, sizes, dtype = ast.literal_eval(f"({example})")
    hebe.load_profile(ROOT / "evidence" / "h200-profile" / "profiles" / "merged.json", BOARD)
    try:
        choice = hebe.dispatch(operation, sizes, dtype)
        assert choice is not None and choice.provenance == "measured"
    finally:
        hebe.unload_profile()


def test_a_missing_row_falls_back_and_is_said_once(profile):
    hebe.load_profile(profile, BOARD)
    with pytest.warns(RuntimeWarning, match="no row for matmul bf16"):
        assert hebe.dispatch("matmul", (3000, 1), "bf16") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hebe.dispatch("matmul", (3001, 1), "bf16") is None
    with pytest.warns(RuntimeWarning, match="softmax"):
        assert hebe.dispatch("softmax", {"n": 1}, "bf16") is None


def test_a_profile_that_is_refused_leaves_the_one_before(profile, tmp_path):
    hebe.load_profile(profile, BOARD)
    for file, board, exit_code in ((tmp_path / "none.json", BOARD, 2), (profile, "another board", 2)):
        with pytest.raises(hebe.Refused) as caught:
            hebe.load_profile(file, board)
        assert caught.value.exit == exit_code and caught.value.what
    (tmp_path / "bad.json").write_text('{"schema": "hebe.profile/1", "rows": [{}]}')
    with pytest.raises(hebe.Refused) as caught:
        hebe.load_profile(tmp_path / "bad.json", BOARD)
    assert (caught.value.code, caught.value.exit) == ("bad_schema", 5)
    assert hebe.dispatch("matmul", (1, 4096), "bf16").name == "triton"


def test_without_a_profile_dispatch_is_off_and_loads_nothing():
    done = python("import warnings; warnings.simplefilter('error')\nimport hebe\n"
                  "print(hebe.dispatch('matmul', (1, 4096), 'bf16'), 'libhebe' in open('/proc/self/maps').read())", HEBE_PROFILE="")
    assert done.stdout == "None False\n", done.stderr


def test_the_variable_turns_dispatch_on(profile):
    done = python("import hebe\nprint(hebe.dispatch('matmul', (1, 4096), 'bf16').name, hebe.dispatch('matmul', (2, 1), 'fp8'))\n"
                  "print('libarrow' in open('/proc/self/maps').read())\nhebe.unload_profile()\nprint(hebe.dispatch('matmul', (1, 4096), 'bf16'))",
                  HEBE_PROFILE=str(profile), HEBE_BOARD=BOARD)
    assert done.stdout == "triton None\nFalse\nNone\n", done.stderr
    assert done.stderr.count("no row for matmul fp8") == 1


def test_a_variable_that_names_no_profile_is_said_once_and_falls_back(tmp_path):
    code = "import hebe\nfor _ in range(3): print(hebe.dispatch('matmul', (1, 4096), 'bf16'))"
    done = python(code, HEBE_PROFILE=str(tmp_path / "none.json"), HEBE_BOARD=BOARD)
    assert done.returncode == 0 and done.stdout == "None\n" * 3
    assert done.stderr.count("HEBE_PROFILE is not used") == 1 and "none.json" in done.stderr
    done = python(code, HEBE_PROFILE=str(tmp_path / "none.json"), CUDA_VISIBLE_DEVICES="")  # nor is it known which board
    assert done.stdout == "None\n" * 3 and done.stderr.count("HEBE_PROFILE is not used") == 1


MANY = """
import sys, threading, time, warnings, hebe
from hebe import dispatching, library

def slow(name, found=library.file_of):
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.3)  # so that every thread asks while the first one loads
    return found(name)

library.file_of = slow
{before}
together, found = threading.Barrier(8), []

def ask():
    together.wait()
    choice = hebe.dispatch("matmul", (1, 4096), "bf16")
    found.append(choice and choice.name)

threads = [threading.Thread(target=ask) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(sorted(map(str, found)))
"""


def test_threads_that_ask_while_the_variables_profile_is_loaded_wait_for_it(profile):
    done = python(MANY.format(before=""), HEBE_PROFILE=str(profile), HEBE_BOARD=BOARD)
    assert done.stdout == f"{['triton'] * 8}\n" and not done.stderr, done.stderr


def test_threads_that_ask_for_a_variable_that_names_no_profile_all_fall_back_and_one_says_so(tmp_path):
    done = python(MANY.format(before=""), HEBE_PROFILE=str(tmp_path / "none.json"), HEBE_BOARD=BOARD)
    assert done.stdout == f"{['None'] * 8}\n" and done.stderr.count("HEBE_PROFILE is not used") == 1, done.stderr


def test_a_warning_handler_that_dispatches_is_not_waited_for_by_itself(tmp_path):
    handler = "warnings.showwarning = lambda *told: print(hebe.dispatch('matmul', (1, 4096), 'bf16'), file=sys.stderr)"
    done = python(MANY.format(before=handler), HEBE_PROFILE=str(tmp_path / "none.json"), HEBE_BOARD=BOARD)
    assert done.stdout == f"{['None'] * 8}\n" and done.stderr == "None\n"


@pytest.mark.parametrize("board", [BOARD, None])
def test_a_signals_handler_that_dispatches_amid_the_load_falls_back_and_does_not_hang(profile, board):
    """The load holds locks of the thread that it interrupts, libhebe.so's too where the board is asked of it."""
    body = ("import signal, hebe\nfrom hebe import library\nfound = []\n"
            "signal.signal(signal.SIGUSR1, lambda *of: found.append(hebe.dispatch('matmul', (1, 4096), 'bf16')))\n"
            "def amid(what):\n"
            "    def call(*of, **more):\n        signal.raise_signal(signal.SIGUSR1)\n        return what(*of, **more)\n    return call\n"
            "library.file_of, library._load_arrow = amid(library.file_of), amid(library._load_arrow)\n"
            "hebe.dispatch('matmul', (1, 4096), 'bf16')\nprint(found)")
    done = python(body, HEBE_PROFILE=str(profile), **({"HEBE_BOARD": board} if board else {}))
    assert done.returncode == 0 and "None" in done.stdout and set(done.stdout) <= set("[None, ]\n"), done.stdout + done.stderr


def test_a_profile_that_is_loaded_or_unloaded_by_name_goes_before_a_variable_that_is_still_loading(profile, tmp_path):
    """Whichever thread comes first: what was asked for by name is what holds."""
    (tmp_path / "other").mkdir()
    other = profile_in(tmp_path / "other", name="named")
    by_name = ("other = threading.Thread(target=ask); together = threading.Barrier(1); found = []; other.start(); time.sleep(0.1)\n"
               "{call}\nother.join()\nprint(hebe.dispatch('matmul', (1, 4096), 'bf16'))\nraise SystemExit")
    body = MANY.format(before="")
    body = body[:body.index("threads = ")]
    for call, expected in ((f"hebe.load_profile({str(other)!r}, {BOARD!r})", "named"), ("hebe.unload_profile()", "None")):
        done = python(body + by_name.format(call=call), HEBE_PROFILE=str(profile), HEBE_BOARD=BOARD)
        assert expected in done.stdout, done.stderr


def test_a_profile_that_is_refused_by_name_leaves_the_variables(profile, tmp_path):
    done = python(f"import hebe\ntry: hebe.load_profile({str(tmp_path / 'none.json')!r}, {BOARD!r})\n"
                  "except hebe.Refused as r: print(r.code)\n"
                  "print(hebe.dispatch('matmul', (1, 4096), 'bf16').name)", HEBE_PROFILE=str(profile), HEBE_BOARD=BOARD)
    assert done.stdout == "not_found\ntriton\n", done.stderr


def test_an_empty_board_variable_names_no_board(profile):
    done = python("import hebe\nprint(hebe.dispatch('matmul', (1, 4096), 'bf16'))", HEBE_PROFILE=str(profile), HEBE_BOARD="",
                  CUDA_VISIBLE_DEVICES="")
    assert done.stdout == "None\n" and "no_device" in done.stderr, done.stderr


@pytest.mark.parametrize("kind", NO_LIBRARY)
@pytest.mark.parametrize("board", [BOARD, ""])
def test_a_library_that_cannot_be_loaded_falls_back_and_is_said_once(profile, tmp_path, kind, board):
    done = python("import hebe\nfor _ in range(3): print(hebe.dispatch('matmul', (1, 4096), 'bf16'))", HEBE_PROFILE=str(profile),
                  HEBE_BOARD=board, HEBE_LIBRARY_DIR=no_library(tmp_path / "libraries", kind))
    assert done.returncode == 0 and done.stdout == "None\n" * 3, done.stderr
    assert done.stderr.count("HEBE_PROFILE is not used") == 1 and "toolchain_unavailable: libhebe" in done.stderr
    assert "next: " in done.stderr


@pytest.mark.parametrize("kind", NO_LIBRARY)
def test_a_library_that_cannot_be_loaded_is_refused_where_a_profile_is_loaded_by_name(profile, tmp_path, kind):
    folder = no_library(tmp_path / "libraries", kind)
    done = python(f"import hebe\ntry: hebe.load_profile({str(profile)!r}, {BOARD!r})\n"
                  "except hebe.Refused as r: print(r.code, r.exit, r.where, bool(r.next))\n"
                  "print(hebe.dispatch('matmul', (1, 4096), 'bf16'))", HEBE_LIBRARY_DIR=folder)
    file = "" if kind == "a name that no folder has" else f"{os.sep}libhebe_dispatch.so"
    assert done.stdout == f"toolchain_unavailable 3 {folder}{file} True\nNone\n", done.stderr


def test_without_a_gpu_a_profile_needs_its_board_named_and_the_refusal_says_how(profile):
    done = python(f"import hebe\ntry: hebe.load_profile({str(profile)!r})\n"
                  "except hebe.Refused as r: print(r.code, r.exit, r.next)", CUDA_VISIBLE_DEVICES="")
    assert done.stdout.startswith("no_device 3 ") and "board=" in done.stdout and "HEBE_BOARD" in done.stdout, done.stderr
    assert "device=" not in done.stdout, "load_profile has no such argument"


def test_what_keeps_the_board_from_being_known_is_told_with_its_own_next_step_too(profile, tmp_path):
    done = python(f"import hebe\ntry: hebe.load_profile({str(profile)!r})\nexcept hebe.Refused as r: print(r.code, r.next)",
                  HEBE_LIBRARY_DIR=str(tmp_path))
    assert done.stdout.startswith("toolchain_unavailable ") and "board=" in done.stdout and "scripts/wheel" in done.stdout, done.stderr


def test_a_refusal_of_a_profile_has_each_thing_once_and_in_its_place(profile, tmp_path):
    bad, row = tmp_path / "bad.json", json.loads(profile.read_text())["rows"][0]
    bad.write_text(json.dumps({"schema": "hebe.profile/1", "rows": [{**row, "energy_nj": 7}]}))
    text = tmp_path / "text.json"
    text.write_text("no JSON")
    for file, board, code in ((tmp_path / "none.json", BOARD, "not_found"), (profile, "another board", "not_found"),
                              (bad, BOARD, "bad_schema"), (text, BOARD, "bad_schema"), (tmp_path, BOARD, "io_failed")):
        with pytest.raises(hebe.Refused) as caught:
            hebe.load_profile(file, board)
        refused = caught.value
        assert refused.code == code and refused.what and refused.where and refused.next, refused.dict()
        for part in (refused.what, refused.where, refused.next):
            assert not any(word in part for word in ("refused (", "next:", "where:", "\n")), refused.dict()
        assert str(refused).count("next:") == 1 and str(refused).startswith(f"{code}: ")
