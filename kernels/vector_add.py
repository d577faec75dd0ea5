"""out = x + y, the smallest honest memory-bound kernel: 12 bytes move for one addition."""

import triton
import triton.language as tl

from hebe.case import Buffer, Case, Scalar, Tolerance, Uniform, Work


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def case(n: int = 1 << 23, block: int = 1024, num_warps: int = 4) -> Case:
    """Vector addition in fp32. One IEEE addition has one right answer, so the tolerance is zero."""

    def reference(inputs):
        return {"out_ptr": inputs["x_ptr"] + inputs["y_ptr"]}

    return Case(
        name="vector_add",
        description=f"out = x + y, {n} fp32 elements",
        kernel=add_kernel,
        arguments={
            "x_ptr": Buffer((n,), "fp32", "in", Uniform(-1.0, 1.0, seed=1)),
            "y_ptr": Buffer((n,), "fp32", "in", Uniform(-1.0, 1.0, seed=2)),
            "out_ptr": Buffer((n,), "fp32", "out"),
            "n": Scalar(n),
        },
        constexprs={"BLOCK": block},
        grid=(triton.cdiv(n, block), 1, 1),
        options={"num_warps": num_warps},
        tolerance=Tolerance(atol=0.0, rtol=0.0),
        reference=reference,
        work=Work(bytes_read=8 * n, bytes_written=4 * n, operations={"fp32_add": n}),
    )
