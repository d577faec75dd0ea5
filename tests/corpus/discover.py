"""Proposes entries for the corpus's list: imports the packages' modules, guesses signatures, keeps what compiles.

    python tests/corpus/discover.py [--arch 90] [--jobs 2] [--match REGEX] proposals.json

For each kernel that some module of the packages defines (device functions, which return a value or never store, are
left out) it guesses
- which parameters are pointers: those from which the body computes an address of a load, a store, an atomic;
- element types and scalars' types from names and annotations (`labels`: i64, `eps`: fp32, `stride`: i32, divisible);
- constants from the autotuner's configurations, from heuristics, from defaults, else by naming conventions (BT = 64);
and tries a few element types and values of the flags, down to TTGIR. Two of those that compile are written: with the
flags on and off where there are flags, else of two element types. Nobody runs this in CI: its output was put into
kernels.json by hand, where entries were mended and added.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import pkgutil
import re
import signal
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any, Iterator

import corpus
import dumps
import workers

#: Other vendors' code, front ends to models, and what is not Triton.
LEFT_OUT = re.compile(r"_aipu|_amd|_arm|_ascend|_cambricon|_enflame|_hygon|_iluvatar|_kunlunxin|_metax|_mthreads|_sunrise"
                      r"|_tsingmicro|cute|cutile|ascend|npu|tilelang|transformers|_backup|testing")
INTEGER = re.compile(r"idx|index|indices|_ind$|offset|seqlen|label|target|lens?$|lengths?$|_ids?$|ids_|topk_id|token|^pos_?i|"
                     r"position|expert_start|tile_expert|_rev_ptr|count|lock|table|slot|order|perm|rank|start|chunk_|splits|num_|cnt|bins|block_map|argmax|"
                     r"_inverse|sorted|indptr|prefix", re.I)
FLOAT = re.compile(r"eps|scale|alpha|beta|^p$|prob|^lr$|cap$|value|temperature|factor|weight|slope|lambd|threshold|^std|"
                   r"^mean$|momentum|low$|high$|min_|max_|_min|_max|multiplier|smoothing|delta$|gate_limit|coeff|theta|"
                   r"fill|divisor|inv_|decay", re.I)
MASK = re.compile(r"mask|^bool|is_", re.I)
FLAG = re.compile(r"^(USE|HAS|HAVE|IS|STORE|OUTPUT|SAVE|RETURN|WITH|ADD|DO|REVERSE|CAUSAL|NORM|EVEN|TRANS|INTER|NEED|ENABLE|"
                  r"ALLOW|APPLY|ONE_|INCLUDE|KEEP|BACKWARD|ELEMENTWISE|ACC|SKIP|SAFE|FUSE|TILE_STORE|GATHER|FIXED|"
                  r"INPLACE|UNBIASED|LOG|ACTIVATE|NORMAL|ASYMM)|^(causal|reverse|elementwise|inclusive|descending|"
                  r"keepdim|unbiased|one_tile|even|align|training|affine|track|log_target|return_|use_|has_|is_|with_)")
NUMBERS = [  # (name, value), the first that matches
    (r"^(B|Z|bs|cos_bs|BATCH)$", 2), (r"^(H|HK|n_kh|NH|Hk)$", 4), (r"^(HQ|HV|Hq|n_qh)$", 8), (r"^G$|GROUPS?$", 2),
    (r"^(T|N_CTX|SEQ)$", 512), (r"^(K|V|D|hd|HEAD_DIM|DIM|D_HEAD|C|Dv|Dk|S|M|N|L)$", 64), (r"pad_hd", 64),
    (r"pad_n_", 8), (r"^(BK|BV|BD|BN|BM|BS|BB|BI|BJ|BLK)$", 64), (r"^BT$|CHUNK|^BTT$|BTS", 64), (r"^BC$|^BCC$|^BL$|SUB", 16),
    (r"^(NC|NS|NSB)$", 4), (r"^(NK|NV|NT|NB|NUM_SPLITS)$", 2), (r"^W$|KERNEL_SIZE|kernel_", 4), (r"GROUP", 8),
    (r"stride_|padding|dilation", 1), (r"BLOCK_?(SIZE_)?(M|N|K|T|Q|KV|D|H|S|C|B|V|DV|DMODEL|HEAD).?$", 64),
    (r"TILE_?(M|N|K)", 64), (r"BLOCK|TILE|tile", 1024), (r"WARP", 4), (r"rows_per|ROWS", 4), (r"num_|NUM_|n_", 4),
    (r"STAGE", 2), (r"eps", 1e-6), (r"scale|SCALE|alpha|smooth|LIMIT|CAP|bound", 0.5), (r"POW|power", 2), (r"TOPK|topk|top_k|^k$", 4),
    (r"[dD]im|SIZE|size", 64), (r"rank|NDIM|ndim", 2),
]


def modules(package: str) -> Iterator[str]:
    yield package
    found = importlib.import_module(package)
    yield from _below(found.__path__, package + ".")


def _below(path: Any, prefix: str) -> Iterator[str]:
    for item in pkgutil.iter_modules(path, prefix):
        if not LEFT_OUT.search(item.name):
            yield item.name
            if item.ispkg:
                yield from _below(importlib.util.find_spec(item.name).submodule_search_locations, item.name + ".")


class Addresses(ast.NodeVisitor):
    """Which parameters of a kernel are pointers."""

    def __init__(self, function: Any, depth: int = 0) -> None:
        self.function, self.depth = function, depth
        self.parameters = set(function.arg_names)
        self.bases: dict[str, set[str]] = {name: {name} for name in self.parameters}
        self.pointers: set[str] = set()
        self.scalars: set[str] = set()
        self.stores = self.returns = False
        tree = ast.parse(textwrap.dedent(function.src))
        for _ in range(2):  # a loop's body may use what it assigns further down
            self.visit(tree)
        self.pointers -= self.scalars

    def base(self, node: ast.AST | None) -> set[str]:
        match node:
            case ast.Name():
                return self.bases.get(node.id, set())
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.base(node.left) | self.base(node.right)
            case ast.IfExp():
                return self.base(node.body) | self.base(node.orelse)
            case ast.Subscript():
                return self.base(node.value)
            case ast.Call(func=ast.Attribute(attr="to" | "cast")) if not _is_tl(node.func.value):
                return self.base(node.func.value)
            case ast.Call(func=ast.Attribute(attr="where")):
                return self.base(node.args[1]) | self.base(node.args[2])
            case ast.Call(func=ast.Attribute(attr="make_block_ptr" | "advance" | "multiple_of" | "max_contiguous")):
                return self.base(_argument(node, 0, "base"))
        return set()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for goal in node.targets:
            pairs = zip(goal.elts, node.value.elts) if isinstance(goal, ast.Tuple) and isinstance(node.value, ast.Tuple) \
                else [(goal, node.value)]
            for one, value in pairs:
                if isinstance(one, ast.Name):
                    self.bases[one.id] = self.bases.get(one.id, set()) | self.base(value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and isinstance(node.op, (ast.Add, ast.Sub)):
            self.bases[node.target.id] = self.bases.get(node.target.id, set()) | self.base(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        self.generic_visit(node)
        self.returns |= node.value is not None

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        if not isinstance(node.op, (ast.Add, ast.Sub)):
            for side in (node.left, node.right):
                if isinstance(side, ast.Name):
                    self.scalars |= {side.id} & self.parameters

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        if not any(isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) for operator in node.ops):
            for side in (node.left, *node.comparators):
                if isinstance(side, ast.Name):
                    self.scalars |= {side.id} & self.parameters

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if node.attr == "element_ty":
            inner = node.value
            while isinstance(inner, ast.Attribute):
                inner = inner.value
            self.pointers |= self.base(inner)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("load", "store", "make_block_ptr", "make_tensor_descriptor") or called.startswith("atomic_"):
            self.pointers |= self.base(_argument(node, 0, "pointer", "base"))
            self.stores |= called == "store" or called.startswith("atomic_")
        elif called in ("cdiv", "range", "min", "max", "minimum", "maximum", "exp", "log", "rand", "randint", "arange"):
            for value in node.args:
                self.scalars |= self.base(value)
        elif self.depth < 4:
            self._device_function(node)

    def _device_function(self, node: ast.Call) -> None:
        from hebe.worker.stand_ins import unwrap

        value: Any = None
        if isinstance(node.func, ast.Name):
            value = self.function.__globals__.get(node.func.id)
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            value = getattr(self.function.__globals__.get(node.func.value.id), node.func.attr, None)
        callee = unwrap(value) if value is not None else None
        if callee is None or callee is self.function or callee.__module__.startswith("triton"):
            return
        inside = Addresses(callee, self.depth + 1)
        self.stores |= inside.stores
        for index, name in enumerate(callee.arg_names):
            if name in inside.pointers:
                self.pointers |= self.base(_argument(node, index, name))


def _is_tl(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("tl", "triton")


def _argument(node: ast.Call, index: int, *names: str) -> ast.AST | None:
    if len(node.args) > index:
        return node.args[index]
    return next((keyword.value for keyword in node.keywords if keyword.arg in names), None)


def wrappers(value: Any) -> Iterator[Any]:
    from triton.runtime import JITFunction

    while value is not None and not isinstance(value, JITFunction):
        yield value
        value = getattr(value, "fn", None)


def tuned(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(constants, options) of the middle one of an autotuner's configurations."""
    for wrapper in wrappers(value):
        configs = getattr(wrapper, "configs", None)
        if configs:
            config = configs[len(configs) // 2]
            return dict(config.kwargs), {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return {}, {}


def heuristics(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for wrapper in wrappers(value):
        if isinstance(getattr(wrapper, "values", None), dict):
            found |= wrapper.values
    return found


def guess(module: str, name: str, value: Any, element: str, flags: bool) -> corpus.Entry:
    from hebe.worker.stand_ins import unwrap

    function = unwrap(value)
    addresses = Addresses(function)
    constants, options = tuned(value)
    args: dict[str, str] = {}
    for parameter in function.params:
        given = parameter.name
        if given in constants:
            continue
        if parameter.is_constexpr:
            constants[given] = _constant(parameter, element, flags)
        elif given in addresses.pointers or (given.lower().endswith("ptr") and given not in addresses.scalars):
            args[given] = f"*{_pointee(given, element)}:16"
        else:
            args[given] = _scalar(parameter)
    known = dict(constants)
    for given in args:
        known[given] = (object() if flags or not args[given].startswith("*") else None) if args[given].startswith("*") else 64
    for given, rule in heuristics(value).items():
        try:
            constants[given] = rule(known)
        except Exception:
            pass
        args.pop(given, None)
    for option in ("num_warps", "num_stages", "num_ctas"):  # heuristics and configurations may set these too
        if option in constants and option not in function.arg_names:
            options[option] = constants.pop(option)
    constants = {given: value for given, value in constants.items() if given in function.arg_names}
    optional = _optional(function) & args.keys() if not flags else set()
    for given in optional:  # a pointer that the body compares with None
        args.pop(given)
        constants[given] = None
    return corpus.Entry(id=f"{module}.{name}", module=module, kernel=name, args=args,
                        constexprs={key: _encoded(value) for key, value in constants.items()}, options=options)


def _optional(function: Any) -> set[str]:
    return set(re.findall(r"\b(\w+) is (?:not )?None", function.src))


def _constant(parameter: Any, element: str, flags: bool) -> Any:
    name = parameter.name
    if parameter.has_default:
        return parameter.default
    if FLAG.search(name) or "bool" in str(parameter.annotation):
        return flags
    if re.search(r"dtype|DTYPE|_TYPE$", name):
        return {"dtype": element}
    if re.search(r"precision|PRECISION", name):
        return "tf32"
    for pattern, number in NUMBERS:
        if re.search(pattern, name):
            return number
    return 16


def _encoded(value: Any) -> Any:
    import triton.language as tl

    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, tl.dtype):
        return {"dtype": str(value)}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"float": str(value)}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    return value if isinstance(value, (dict, list, bool, int, float, str, type(None))) else bool(value)


def _pointee(name: str, element: str) -> str:
    if MASK.search(name):
        return "i1"
    if INTEGER.search(name):
        return "i64" if re.search(r"label|target|Y_|ids|token", name) else "i32"
    return "fp32" if re.search(r"rstd|mean|lse|loss|_acc|seed|var$|^g$|^gk$|^gv$|RSTD|Rstd", name) else element


def _scalar(parameter: Any) -> str:
    name, annotation = parameter.name, str(parameter.annotation)
    if "float" in annotation or "fp32" in annotation:
        return "fp32"
    if re.search("stride|STRIDE", name):
        return "i32:16"
    if re.search("seed|SEED", name):
        return "i64"
    return "fp32" if FLOAT.search(name) and "int" not in annotation and "num" not in name else "i32"


TRIES = [("bf16", True), ("fp16", False), ("fp32", True), ("fp32", False), ("i32", True)]


def propose(job: tuple[str, str], arch: int, seconds: int = 40) -> tuple[list[str], str]:
    """(entries that compile, why the last one did not)"""
    from hebe.worker.stand_ins import unwrap

    module, name = job
    value = getattr(importlib.import_module(module), name)
    addresses = Addresses(unwrap(value))
    if addresses.returns or not addresses.stores:
        return [], "a device function"
    made: list[corpus.Entry] = []
    reason = ""
    for element, flags in TRIES:
        signal.alarm(seconds)
        try:
            if element == "i32" and made:
                break
            entry = guess(module, name, value, element, flags)
            if any((entry.args, entry.constexprs) == (other.args, other.constexprs) for other in made):
                continue
            with corpus.opened(entry, arch) as kernel:
                dumps.texts_until("ttgir", kernel.source(), arch, kernel.options)
            made.append(entry)
        except BaseException as error:
            reason = f"{element} {flags}: {type(error).__name__}: {_short(error)}"
        finally:
            signal.alarm(0)
        if len(made) == 2:
            break
    return [entry.line() for entry in made], reason


def _short(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[-400:]


def _start(arch: int, build: str) -> None:
    warnings.simplefilter("ignore")
    corpus.prepare(arch, Path(build))


def _run(job: tuple[str, str, int]) -> tuple[list[str], str]:
    return propose(job[:2], job[2])


def _jobs(match: str) -> list[tuple[str, str]]:
    from hebe.worker import stand_ins

    found, seen = [], set()
    for package in ("liger_kernel", "fla", "flag_gems"):
        for module in modules(package):
            try:
                imported = importlib.import_module(module)
            except Exception as error:
                print(f"{module}: not imported: {error}", file=sys.stderr)
                continue
            for name, kernel in stand_ins.kernels_of(imported):
                if re.search(match, f"{module}.{name}") and id(kernel) not in seen:
                    seen.add(id(kernel))
                    found.append((module, name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proposals", type=Path, help="the file to write")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--match", default="")
    parser.add_argument("--build", default=str(corpus.ROOT / "build" / "corpus" / "discover"))
    given = parser.parse_args()
    _start(given.arch, given.build)
    jobs = _jobs(given.match)
    print(f"{len(jobs)} kernels and device functions", file=sys.stderr)
    lines = []
    for job, result, error in workers.results([(*job, given.arch) for job in jobs], _start, (given.arch, given.build),
                                              _run, given.jobs, limit_seconds=150):
        made, reason = result or ([], error)
        lines += made
        if not made and reason != "a device function":
            print(f"{job[0]}.{job[1]}: {reason}", file=sys.stderr)
    given.proposals.write_text("[\n" + ",\n".join(sorted(lines)) + "\n]\n")


if __name__ == "__main__":
    main()
