"""Of a file with a kernel, the part that the kernel needs, and nothing else."""

from __future__ import annotations

import ast
import sys
import textwrap

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))

from hebe.worker.checkout_closure import NoKernel, closure_of  # noqa: E402


def kept(text: str, kernel: str = "kernel") -> list[str]:
    """The first line of each statement that is kept."""
    return [ast.unparse(node).splitlines()[0] for node in closure_of(textwrap.dedent(text), kernel).body]


def test_names_are_followed_through_functions_defaults_and_decorators_in_the_files_order():
    assert kept("""
        import os, sys as system
        import triton
        import triton.language as tl
        unused = launch()
        SIZE = HALF * 2
        HALF = 4
        wrap = triton.jit
        @wrap
        def kernel(x, N: tl.constexpr = SIZE):
            tl.store(x, helper(x))
        @triton.jit
        def helper(x):
            return [system for _ in range(3)]
        @triton.jit
        def other(x):
            return x
        other[(1,)]()
    """) == ["import sys as system", "import triton", "import triton.language as tl", "SIZE = HALF * 2", "HALF = 4",
             "wrap = triton.jit", "@wrap", "@triton.jit"]


def test_a_local_name_is_not_the_global_one_of_the_same_name():
    assert kept("""
        x = torch.rand(3)
        row: int = launch()
        def kernel(y):
            x = y
            for row in y:
                x += row
            return [mask for mask in y]
        mask = launch()
    """) == ["def kernel(y):"]


def test_a_class_and_a_nested_function_use_globals():
    assert kept("""
        A = B = C = D = 1
        E = 2
        F = 3
        class Base: pass
        class Table(Base):
            a = A
            F = F
            def read(self): return E
        def kernel():
            def inner(): return Table.a
            return inner
    """) == ["A = B = C = D = 1", "E = 2", "F = 3", "class Base:", "class Table(Base):", "def kernel():"]


def test_every_statement_that_binds_a_name_is_kept():
    assert kept("""
        N = 1
        N += 1
        table = {}
        table["a"] = 2
        table.field = 3
        table.append(4)
        other["b"] = 5
        (M, (P, *Q)) = N, (1, 2)
        if is_cuda():
            K = 1
        else:
            K = 2
        try:
            import apex
            FAST = True
        except ImportError:
            FAST = False
        try:
            launch()
        except Exception: pass
        for L in range(3): pass
        with open("x") as F: pass
        def is_cuda(): return True
        def kernel(): return N, table, P, K, FAST, L, F
        N = 5
    """) == ["N = 1", "N += 1", "table = {}", "table['a'] = 2", "table.field = 3", "M, (P, *Q) = (N, (1, 2))",
             "if is_cuda():", "try:", "for L in range(3):", "with open('x') as F:", "def is_cuda():", "def kernel():",
             "N = 5"]


def test_a_star_import_is_kept_only_for_a_name_that_nothing_else_binds():
    text = "from math import *\nfrom os import path\ndef kernel(): return {}\n"
    assert kept(text.format("path, len")) == ["from os import path", "def kernel():"]
    assert kept(text.format("path, sqrt")) == ["from math import *", "from os import path", "def kernel():"]


def test_future_imports_stay_and_the_docstring_goes():
    assert kept('"""Doc."""\nfrom __future__ import annotations\nprint(3)\ndef kernel(): pass\n') == [
        "from __future__ import annotations", "def kernel():"]


def test_the_kernels_rules_for_a_launch_are_taken_off_and_what_they_need_with_them():
    tree = closure_of(textwrap.dedent("""
        import triton
        from triton import heuristics
        configs = find_configs()
        @triton.autotune(configs=configs, key=[])
        @heuristics({"EVEN": lambda arguments: launch(arguments)})
        @triton.jit(noinline=True)
        def kernel(x): pass
    """), "kernel")
    assert ast.unparse(tree) == "import triton\n\n@triton.jit(noinline=True)\ndef kernel(x):\n    pass"
    assert (tree.body[1].lineno, tree.body[1].decorator_list[0].lineno) == (8, 7)


def test_a_kernel_inside_an_if_and_a_kernel_by_assignment_are_found():
    assert kept("if X:\n    def kernel(): pass\nX = 3\n") == ["if X:", "X = 3"]
    assert kept("import triton\ndef body(): pass\nkernel = triton.jit(body)\nkernel[(1,)]()\n") == [
        "import triton", "def body():", "kernel = triton.jit(body)"]


def test_a_file_without_the_kernel_names_those_that_it_has():
    with pytest.raises(NoKernel) as error:
        closure_of("import triton\n@triton.jit\ndef first(): pass\n@triton.jit()\ndef second(): pass\ndef f(): pass", "k")
    assert error.value.args == ("first", "second")
