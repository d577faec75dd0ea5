"""A case's kernel from edited TTGIR: the text goes through the rest of Triton's own pipeline, to cubin.

In: the arguments of a compile and the text. Out: what a compile gives, with "ttgir" exactly the text given and no
"ttir". The launch is the case's: a grid that is a function is asked with the unedited kernel, so that both launch the
same programs; entry, shared memory, scratch and warps are the new kernel's.

The schedule is fixed: the text's module attributes must say the options' num_warps and num_ctas, the target, and (where
it is given) maxnreg, which Triton takes from the text alone; the entry must take the case's arguments. num_stages has
done its work before TTGIR and changes nothing. An option ir_override is refused. Every other option is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

from hebe.worker import toolchain
from hebe.worker.compile_case import Prepared, cache_key, compile_base, disk_failure, prepared_case, run_compiler
from hebe.worker.compile_error import error_text
from hebe.worker.compile_record import artifacts_of, provenance_of
from hebe.worker.launch import launch_of
from hebe.worker.protocol import Failure, jsonable
from hebe.worker.resources import resources_of

#: MLIR puts a text's file name into locations, and an assertion takes them into PTX: so it always has this one.
FILE_NAME = "kernel.ttgir"
TEXT_STAGES = ("llir", "ptx")
#: Triton's names of types in a signature to MLIR's.
MLIR_TYPES = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "u1": "i1", "u8": "i8", "u16": "i16", "u32": "i32",
              "u64": "i64"}


def recompile_case(ttgir: str, **request: Any) -> dict[str, Any]:
    """{"launch", "artifacts", "provenance", "resources"}; raises Failure."""
    try:
        data = ttgir.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Failure("bad_request", f"params.ttgir: is no text: {error}") from None
    with prepared_case(**request) as prepared:
        if prepared.bound.options.ir_override is not None:
            raise Failure("bad_option", "ir_override: would replace the TTGIR that is given; leave one of them out")
        with _as_file(prepared, data):
            check_text(prepared)
            compiled = _compile(prepared)
        cubin, metadata = compiled.asm["cubin"], compiled.metadata
        sass, nvdisasm = toolchain.disassemble(cubin)
        texts = {"ttgir": ttgir} | {stage: compiled.asm[stage] for stage in TEXT_STAGES}
        launch = launch_of(prepared.case, prepared.values, prepared.target, prepared.bound, metadata,
                           _base_grid(prepared))
        return {
            "launch": jsonable(launch),
            "artifacts": artifacts_of(prepared.loaded.data, texts, cubin, sass),
            "provenance": jsonable(provenance_of(prepared, metadata._asdict(), nvdisasm)
                                   | {"ttgir_sha256": hashlib.sha256(data).hexdigest()}),
            "resources": resources_of(cubin, metadata.name, sass),
        }


@contextlib.contextmanager
def _as_file(prepared: Prepared, data: bytes) -> Iterator[None]:
    """Stand in the folder of a file with the text, whose relative name is always the same."""
    folder = prepared.cache / cache_key(prepared) / "ttgir" / hashlib.sha256(data).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
            part.write(data)
        os.replace(part.name, folder / FILE_NAME)  # another worker may read the file at this moment
    except OSError as error:
        raise (disk_failure(error, prepared.cache) or error) from None
    with contextlib.chdir(folder):
        yield


def check_text(prepared: Prepared) -> None:
    """Whether the text in FILE_NAME parses and fits the case; raises Failure(compile_failed)."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    prepared.backend.load_dialects(context)
    with _diagnosed():
        module = ir.parse_mlir_module(FILE_NAME, context)
        module.context = context
        text = module.str_nodebug()
    options, entry = prepared.bound.options, module.get_entry_func_name()
    if not entry:
        raise _misfit("has no public function, so there is no kernel to launch")
    for attribute, wanted in (("ttg.num-warps", options.num_warps), ("ttg.num-ctas", options.num_ctas),
                              ("ttg.maxnreg", options.maxnreg)):
        found = module.get_int_attr(attribute)
        if found != wanted:
            option = attribute.removeprefix("ttg.").replace("-", "_")
            raise _misfit(f"has {attribute} = {found}, the case's option {option} is {wanted}; the schedule of a "
                          "recompiled kernel is the case's: change the option, or the text")
    target = re.search(r'^module attributes \{.*ttg\.target = "([^"]*)"', text, re.MULTILINE)
    wanted_target = "{backend}:{arch}".format(**prepared.target)
    if target is None or target.group(1) != wanted_target:
        raise _misfit(f"is for {target.group(1) if target else 'no target'}, the request's target is {wanted_target}")
    types = module.get_function_signature(module.get_function(entry))
    signature = [_mlir_type(kind) for kind in prepared.bound.signature.values() if kind != "constexpr"]
    if types != signature:
        raise _misfit(f"takes ({', '.join(types)}), the case gives ({', '.join(signature)})")


def _misfit(text: str) -> Failure:
    return Failure("compile_failed", f"the TTGIR {text}", FILE_NAME)


def _mlir_type(kind: str) -> str:
    """ "*f32" of "*fp32", as Triton writes a function's MLIR types."""
    if kind.startswith("*"):
        return "*" + _mlir_type(kind[1:].removeprefix("k"))
    return MLIR_TYPES.get(kind, kind)


def _compile(prepared: Prepared) -> Any:
    with _diagnosed():
        return run_compiler(prepared, FILE_NAME)


def _base_grid(prepared: Prepared) -> tuple[int, int, int]:
    if not callable(prepared.case.grid):
        return prepared.case.grid
    base = compile_base(prepared)
    return prepared.grid(resources_of(base.asm["cubin"], base.metadata.name, None), base.metadata)


@contextlib.contextmanager
def _diagnosed() -> Iterator[None]:
    """Turn what Triton raises into Failure(compile_failed), with MLIR's own diagnostics, which go to stderr only."""
    with _captured_stderr() as printed:
        try:
            yield
        except Failure:
            raise
        except Exception as error:
            said = printed()
            line = re.search(rf"\b{re.escape(FILE_NAME)}\"?:(\d+)", said)
            message = said.strip() if line else f"{error_text(error)}\n{said}".strip()
            raise Failure("compile_failed", message, f"{FILE_NAME}:{line.group(1)}" if line else FILE_NAME) from None


@contextlib.contextmanager
def _captured_stderr() -> Iterator[Callable[[], str]]:
    """What is written to descriptor 2 meanwhile; afterwards it goes where it would have gone."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def printed() -> str:
            sys.stderr.flush()
            return os.pread(file.fileno(), 1 << 20, 0).decode("utf-8", "replace")

        try:
            yield printed
        finally:
            text = printed()
            os.dup2(before, 2)
            os.close(before)
            sys.stderr.write(text)
            sys.stderr.flush()
