"""The part of a Python file that one of its kernels needs.

In: a file's text and a kernel's name. Out: the syntax tree of the kernel's definition and of the top-level statements
that define the names which it uses, transitively, in their order and with their line numbers; nothing else. So a
tutorial's driver queries, checks and benchmarks do not run. Kept are imports (only the names needed), functions,
classes, assignments (also to an item or attribute of a needed name), and whole `if`, `try`, `with` and loop statements
that bind a needed name. Not kept are plain calls, such as `table.append(...)`. A name that several statements bind
keeps all of them.
"""

from __future__ import annotations

import ast
import builtins
import copy
import symtable
from dataclasses import dataclass
from typing import Iterator

#: Decorators that choose constants and options for a launch, which here the case does.
HOST_SIDE = ("autotune", "heuristics")


class NoKernel(LookupError):
    """The file defines no function of this name at its top level; `args` are those that it does define."""


@dataclass
class _Statement:
    """A top-level statement, the names that it binds and the global names that it uses."""

    node: ast.stmt
    binds: set[str]
    uses: set[str]


def closure_of(text: str, kernel: str, file: str = "<text>") -> ast.Module:
    """The part of `text` that `kernel` needs; raises NoKernel, and SyntaxError with the name of the file."""
    tree = _WithoutHostSide(kernel).visit(ast.parse(text, file))
    statements = [_Statement(node, *_names(node)) for node in tree.body]
    if not any(kernel in statement.binds for statement in statements):
        functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_jit(node)]
        raise NoKernel(*functions)
    needed, kept = {kernel}, set()
    while True:
        found = {index for index, statement in enumerate(statements) if statement.binds & needed} - kept
        if not found:
            bound = set().union(*(statements[index].binds for index in kept))
            if needed - bound - set(dir(builtins)):  # `from module import *` may bind what nothing else does
                found = {index for index, one in enumerate(statements) if _is_star(one.node)} - kept
        if not found:
            break
        kept |= found
        for index in found:
            needed |= statements[index].uses
    body = [node for index, statement in enumerate(statements)
            if index in kept or _is_future(statement.node) for node in _only(statement.node, needed)]
    return ast.Module(body, [])


class _WithoutHostSide(ast.NodeTransformer):
    def __init__(self, kernel: str) -> None:
        self.kernel = kernel

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if node.name == self.kernel:
            node.decorator_list = [one for one in node.decorator_list if _last_name(one) not in HOST_SIDE]
        return node  # functions within functions are left alone


def _last_name(node: ast.expr) -> str:
    """The name that is called or read last: "autotune" of `triton.autotune(...)`."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_jit(node: ast.FunctionDef) -> bool:
    return any(_last_name(one) == "jit" for one in node.decorator_list)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def _names(node: ast.stmt) -> tuple[set[str], set[str]]:
    """(names bound, global names used) of a top-level statement; Python's own symbol table tells local names apart."""
    if _is_future(node):
        return set(), set()
    table = symtable.symtable(ast.unparse(node), "statement", "exec")
    binds = {symbol.get_name() for symbol in table.get_symbols()
             if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()}
    uses = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    for inner in _below(table):
        uses |= {symbol.get_name() for symbol in inner.get_symbols()
                 if symbol.is_referenced() and (symbol.is_global() or inner.get_type() == "class")}
    return binds | set(_roots(node)), uses


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _below(child)


def _roots(node: ast.stmt) -> Iterator[str]:
    """`table` of `table["key"] = 1` and of `table.field = 1`."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        inner = target
        while isinstance(inner, (ast.Subscript, ast.Attribute)):
            inner = inner.value
        if inner is not target and isinstance(inner, ast.Name):
            yield inner.id


def _only(node: ast.stmt, needed: set[str]) -> list[ast.stmt]:
    """The statement, of an import only the names that are needed."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or _is_future(node):
        return [node]
    node = copy.copy(node)
    node.names = [alias for alias in node.names
                  if alias.name == "*" or (alias.asname or alias.name.split(".")[0]) in needed]
    return [node] if node.names else []
