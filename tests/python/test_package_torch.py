"""A callable of torch as an arm: what is captured, replayed, kept and told, with a stand-in for torch's CUDA interface.

The real one needs a GPU (examples/autotune_softmax.py is run there); here its calls are recorded in order.
"""

from __future__ import annotations

import gc
import sys
import types
from contextlib import contextmanager

import hebe
import pytest
from hebe.callables import torch_arm, torch_or_none
from package import QUICK, needs_library


class Cuda:
    """torch.cuda as far as an arm uses it. Times by a clock that a call of the function moves."""

    def __init__(self, seconds_per_call=20e-6, capture_error=None):
        self.log, self.now, self.seconds, self.capture_error = [], 0.0, seconds_per_call, capture_error
        self.capturing, self.alive = None, 0
        cuda = self

        class CUDAGraph:
            def __init__(self):
                self.calls = 0
                cuda.alive += 1

            def __del__(self):
                cuda.alive -= 1

            def replay(self):
                assert cuda.capturing is None
                cuda.log.append(("replay", self.calls))
                cuda.now += self.calls * cuda.seconds

        class Stream:
            cuda_stream = 7

            def wait_stream(self, other):
                cuda.log.append("wait")

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = cuda.now

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return (end.at - self.at) * 1e3

        self.CUDAGraph, self.Stream, self.Event = CUDAGraph, Stream, Event
        self._current = Stream()

    @contextmanager
    def graph(self, graph):
        self.capturing = graph
        try:
            yield
            if self.capture_error is not None:
                raise RuntimeError(self.capture_error)
        finally:
            self.capturing = None

    @contextmanager
    def stream(self, stream):
        self.log.append("side stream")
        yield
        self.log.append("back")

    def current_stream(self):
        return self._current

    def synchronize(self):
        self.log.append("synchronize")

    def is_available(self):
        return True

    def call(self):
        """The user's function."""
        if self.capturing is None:
            self.log.append("call")
            self.now += self.seconds
        else:
            self.capturing.calls += 1


@pytest.fixture
def torch():
    def make(**options):
        return types.SimpleNamespace(cuda=Cuda(**options))
    return make


def test_a_callable_is_warmed_up_beside_the_stream_and_then_captured(torch):
    t = torch()
    arm = torch_arm(t, t.cuda.call, capture=True)
    assert t.cuda.log[:8] == ["wait", "side stream", "call", "call", "call", "back", "wait", "synchronize"]
    assert arm.captured and arm.calls == 100 and arm.how == "captured, 100 calls a CUDA graph"  # 100 of 20 µs fill 2 ms
    t.cuda.log.clear()
    arm.enqueue(7)
    assert t.cuda.log == [("replay", 100)], "a replay calls no Python of the user's"


def test_the_graph_lives_as_long_as_its_arm(torch):
    t = torch()
    arm = torch_arm(t, t.cuda.call, capture=True)
    assert t.cuda.alive == 1
    arm.enqueue(7)
    del arm
    assert t.cuda.alive == 0


@pytest.mark.parametrize("seconds, calls", [(5e-3, 1), (2e-3, 1), (1e-3, 2), (1e-9, 1000)])
def test_a_graph_holds_as_many_calls_as_fill_it(torch, seconds, calls):
    t = torch(seconds_per_call=seconds)
    assert torch_arm(t, t.cuda.call, capture=True).calls == calls


def test_what_only_capture_refuses_is_called_as_it_is_and_told(torch):
    t = torch(capture_error="operation not permitted when stream is capturing\nmore")
    arm = torch_arm(t, t.cuda.call, capture=True)
    assert (arm.calls, arm.captured) == (1, False)
    assert arm.how == "called (not captured: operation not permitted when stream is capturing)"
    assert t.cuda.log[-1] == "synchronize" and t.cuda.alive == 0
    arm.enqueue(7)
    assert t.cuda.log[-1] == "call"


def test_capture_that_is_not_wanted_is_not_tried(torch):
    t = torch(capture_error="captured")
    assert torch_arm(t, t.cuda.call, capture=False).how == "called (capture=False)"


def test_what_the_function_itself_raises_comes_out(torch):
    def breaks():
        raise ZeroDivisionError("of the user's")

    with pytest.raises(ZeroDivisionError, match="of the user's"):
        torch_arm(torch(), breaks, capture=True)


def test_torch_is_taken_where_the_program_imported_it_and_never_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert torch_or_none() is None
    stands_in = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", stands_in)
    assert torch_or_none() is None  # a build without CUDA
    stands_in.cuda = Cuda()
    assert torch_or_none() is stands_in


@needs_library
def test_the_current_stream_of_torch_is_what_the_library_is_given(monkeypatch, tmp_path):
    """As far as it goes with no GPU: the work is captured, the stream handed over, and the device refused by name."""
    stands_in = types.ModuleType("torch")
    stands_in.cuda = Cuda()
    monkeypatch.setitem(sys.modules, "torch", stands_in)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    asked = []
    from hebe import library
    real = library.call
    monkeypatch.setattr(library, "call", lambda name, request, *rest: asked.append((name, request)) or real(name, request, *rest))
    with pytest.raises(hebe.Refused) as caught:
        hebe.measure(stands_in.cuda.call, **{**QUICK, "device": "auto", "data_root": tmp_path / "root"})
    assert caught.value.code == "no_device" and not (tmp_path / "root").exists()
    assert [(name, request["stream"], request["calls_per_enqueue"]) for name, request in asked] == [("hebe_measure", 7, [100, 100])]
    del caught  # its traceback
    gc.collect()
    assert stands_in.cuda.alive == 0, "the graph is gone with the measurement"
