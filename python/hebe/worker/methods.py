"""The worker's methods: unpack a request, call the one module that does the work, pack the result."""

from __future__ import annotations

import inspect

from hebe.worker import parameters, protocol, toolchain
from hebe.worker.compile_case import compile_case
from hebe.worker.load_case import open_case
from hebe.worker.pipeline_probe import probe_pipeline as try_pipeline
from hebe.worker.protocol import Failure, refuse_rest, take
from hebe.worker.recompile import recompile_case
from hebe.worker.reference import compute_reference


def hello(params: dict) -> dict:
    """What is installed. Imports neither Triton nor numpy, so it is fast and works without them."""
    refuse_rest(params)
    return {"protocol": protocol.VERSION, **toolchain.describe()}


def describe(params: dict) -> dict:
    """The case function's name, description and parameters. Imports the case file; does not call the function."""
    path, function = take(params, "case", str), take(params, "function", str, default="case")
    refuse_rest(params)
    toolchain.require_triton()
    with open_case(path) as loaded:
        target = loaded.function(function)
        stem = loaded.file_name.removesuffix(".py")
        return {
            "name": stem if function == "case" else f"{stem}:{function}",
            "description": inspect.cleandoc(target.__doc__ or loaded.module.__doc__ or ""),
            "parameters": [parameter.described() for parameter in parameters.of_function(loaded, target)],
        }


def compile(params: dict) -> dict:
    """A case to its launch, artifacts, provenance and resources, for one target and one set of options."""
    request = _compile_request(params)
    refuse_rest(params)
    toolchain.require_triton()
    return compile_case(**request)


def recompile(params: dict) -> dict:
    """A case's kernel from edited TTGIR: the same request and result as compile, with the text in "ttgir"."""
    text, request = take(params, "ttgir", str), _compile_request(params)
    refuse_rest(params)
    toolchain.require_triton()
    return recompile_case(text, **request)


def probe_pipeline(params: dict) -> dict:
    """What Triton can dump, take back and compile again, tried on a case; "edited" is TTGIR of its own, or null."""
    edited, request = take(params, "edited", str, default=None), _compile_request(params)
    refuse_rest(params)
    toolchain.require_triton()
    return try_pipeline(edited, **request)


def reference(params: dict) -> dict:
    """Run the case's reference on stored inputs and store its outputs."""
    request = {
        "path": take(params, "case", str),
        "function": take(params, "function", str, default="case"),
        "given": take(params, "parameters", dict, default={}),
        "inputs": take(params, "inputs", dict),
        "outputs": take(params, "outputs", dict),
    }
    refuse_rest(params)
    toolchain.require_triton()
    return compute_reference(**request)


def _compile_request(params: dict) -> dict:
    """The arguments of `prepared_case`, taken out of the params."""
    return {
        "path": take(params, "case", str),
        "function": take(params, "function", str, default="case"),
        "given": take(params, "parameters", dict, default={}),
        "target": _target(take(params, "target", dict)),
        "overrides": take(params, "options", dict, default={}),
        "cache_dir": take(params, "cache_dir", str, default=None),
    }


def _target(target: dict) -> dict:
    """The target, complete and checked; raises Failure(bad_request)."""
    backend = take(target, "backend", str)
    if backend != "cuda":
        raise Failure("bad_request", f"target.backend: {backend!r} is not supported; only 'cuda' is")
    arch, warp_size = take(target, "arch", int), take(target, "warp_size", int, default=32)
    if not 70 <= arch < 1000:
        raise Failure("bad_request", f"target.arch: {arch} is not a compute capability such as 90")
    if warp_size != 32:
        raise Failure("bad_request", f"target.warp_size: {warp_size}; every CUDA target has 32")
    refuse_rest(target)
    return {"backend": backend, "arch": arch, "warp_size": warp_size}


METHODS = {"hello": hello, "describe": describe, "compile": compile, "recompile": recompile, "reference": reference,
           "probe_pipeline": probe_pipeline}
