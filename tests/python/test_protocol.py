"""The stream holds exactly one answer a line, whatever comes in and whatever user code does."""

import json
import os
import signal

import pytest
from conftest import VECTOR_ADD


@pytest.mark.parametrize("line", [
    b"", b"   ", b"nonsense", b"{", b"[]", b"3", b'"hello"', b"null", b"\xff\xfe", b'{"id": NaN}',
    b'{"id": 1, "method": "\\u0000"}', b"[" * 100_000,
    b'{"method": "hello"}', b'{"id": "1", "method": "hello"}', b'{"id": true, "method": "hello"}', b'{"id": 1.5}',
])
def test_a_malformed_line_is_refused_with_no_id_and_the_worker_goes_on(worker, line):
    answer = worker.raw(line)
    assert answer["id"] is None and answer["ok"] is False
    assert answer["error"]["kind"] == "bad_request"
    assert worker.ask("hello")["protocol"] == "hebe.worker/1"


@pytest.mark.parametrize("request_, words", [
    ({"method": "compile"}, "params.case is missing"),
    ({"method": "dance"}, "known methods: hello, describe, compile, recompile, reference, probe_pipeline, shutdown"),
    ({}, "unknown method None"),
    ({"method": ["hello"]}, "unknown method"),
    ({"method": "hello", "params": [1]}, "params is not an object"),
    ({"method": "hello", "params": {"loud": True}}, "unknown params: loud"),
    ({"method": "describe", "params": {"case": 3}}, "params.case: 3 is not a string"),
    ({"method": "describe", "params": {"case": "kernels/vector_add.py"}}, "not an absolute path"),
])
def test_a_wrong_request_is_refused_under_its_own_id(worker, request_, words):
    answer = worker.raw(json.dumps({"id": 77, **request_}).encode())
    assert answer["id"] == 77
    assert answer["error"]["kind"] == "bad_request"
    assert words in answer["error"]["message"]


@pytest.mark.parametrize("target, words", [
    ({"backend": "hip", "arch": 90}, "only 'cuda' is"),
    ({"backend": "cuda", "arch": "90"}, "arch"),
    ({"backend": "cuda", "arch": 9}, "compute capability"),
    ({"backend": "cuda", "arch": 90, "warp_size": 64}, "warp_size"),
    ({"backend": "cuda", "arch": 90, "sms": 132}, "unknown params: sms"),
])
def test_a_wrong_target_is_a_bad_request(worker, target, words):
    error = worker.fail("compile", case=str(VECTOR_ADD), target=target)
    assert error["kind"] == "bad_request" and words in error["message"]


def test_the_end_of_stdin_ends_the_worker_with_0(fresh_worker):
    assert fresh_worker().end() == (0, "")


def test_shutdown_is_answered_and_ends_the_worker_with_0(fresh_worker):
    worker = fresh_worker()
    assert worker.ask("shutdown") == {}
    assert worker.process.wait(timeout=20) == 0


def test_prints_in_user_code_go_to_stderr(fresh_worker, write_case):
    case = write_case(top="""
        import os, sys
        print("from print")
        sys.__stdout__.write("from sys.__stdout__\\n")
        os.write(1, b"from descriptor 1\\n")
        os.system("echo from a child process")
        import ctypes
        ctypes.CDLL(None).puts(b"from C")
        ctypes.CDLL(None).fflush(None)
    """)
    worker = fresh_worker()
    assert worker.ask("describe", case=str(case))["name"] == "copy_case"
    status, errors = worker.end()
    assert status == 0
    for words in ("print", "sys.__stdout__", "descriptor 1", "a child process", "C"):
        assert f"from {words}\n" in errors


def test_user_code_that_reads_stdin_finds_it_empty(worker, write_case):
    error = worker.fail("describe", case=str(write_case(top="input()")))
    assert error["kind"] == "case_error" and error["message"].startswith("EOFError")


def test_an_interrupt_from_the_terminal_is_left_to_the_parent(fresh_worker):
    worker = fresh_worker()
    worker.ask("hello")
    os.kill(worker.process.pid, signal.SIGINT)
    assert worker.ask("hello")["protocol"] == "hebe.worker/1"


def test_a_thread_left_by_user_code_does_not_keep_the_worker_alive(fresh_worker, write_case):
    case = write_case(top="import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()")
    worker = fresh_worker()
    worker.ask("describe", case=str(case))
    assert worker.end()[0] == 0
