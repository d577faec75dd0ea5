"""Kernels with operations that no package's kernel in the list reaches. They compute nothing useful."""

import triton
import triton.language as tl


@triton.jit(noinline=True)
def weighted(x, w, shift: tl.constexpr):
    return x * w + shift


@triton.jit(noinline=True)
def two_results(x, y):
    return x + y, x - y


@triton.jit
def calls_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.load(x_ptr + n)  # functions of scalars only: a layout cannot cross such a call
    total, difference = two_results(weighted(head, 2.0, 1.0), weighted(head, head, 3.0))
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * total * difference, mask=i < n)


@triton.jit
def histogram_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    counts = tl.histogram(x, BINS, mask=i < n) if MASKED else tl.histogram(x, BINS)
    tl.atomic_add(y_ptr + tl.arange(0, BINS), counts, sem="relaxed", scope="cta")


@triton.jit
def sort_kernel(x_ptr, y_ptr, z_ptr, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DESCENDING: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + rows * N + tl.arange(0, N)[None, :])
    tl.store(y_ptr + rows * N + tl.arange(0, N)[None, :], tl.sort(x, descending=DESCENDING))
    tl.store(z_ptr + rows * K + tl.arange(0, K)[None, :], tl.topk(x, K))


@triton.jit
def gather_kernel(x_ptr, index_ptr, y_ptr, N: tl.constexpr, M: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :])
    index = tl.load(index_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :])
    tl.store(y_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.gather(x, index, AXIS))


@triton.jit
def messages_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_print("x, and \"n\":", x, n)
    tl.device_print("in hex", n, hex=True)
    tl.device_assert(x > 0, "must be positive: ä, \t, \\")
    tl.static_assert(BLOCK > 1)
    tl.assume(n > 0)
    tl.debug_barrier()
    tl.store(y_ptr + i, x)


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEPS: tl.constexpr,
               OUT: tl.constexpr, PRECISION: tl.constexpr, IMPRECISE: tl.constexpr):
    rm, rn, rk = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), dtype=OUT)
    for step in range(STEPS):
        a = tl.load(a_ptr + rm[:, None] * (K * STEPS) + (step * K + rk)[None, :])
        b = tl.load(b_ptr + (step * K + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=OUT)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def dot_scaled_kernel(a_ptr, sa_ptr, b_ptr, sb_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
                      A: tl.constexpr, B: tl.constexpr, PACK: tl.constexpr):
    rm, rn, rk, rs = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // PACK), tl.arange(0, K // 32)
    a = tl.load(a_ptr + rm[:, None] * (K // PACK) + rk[None, :])
    b = tl.load(b_ptr + rk[:, None] * N + rn[None, :])
    sa = tl.load(sa_ptr + rm[:, None] * (K // 32) + rs[None, :])
    sb = tl.load(sb_ptr + rn[:, None] * (K // 32) + rs[None, :])
    c = tl.dot_scaled(a, sa, A, b, sb, B)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], c)


@triton.jit
def descriptor_matmul_kernel(a_desc, b_desc, c_desc, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr,
                             SPECIALIZE: tl.constexpr, FLATTEN: tl.constexpr):
    m, n = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIALIZE, flatten=FLATTEN):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))


@triton.jit
def descriptor_forms_kernel(x_ptr, index_ptr, y_ptr, n, m, N: tl.constexpr, M: tl.constexpr):
    whole = tl.make_tensor_descriptor(x_ptr, [n, m], [m, 1], [N, M])
    row = tl.make_tensor_descriptor(x_ptr, [n, m], [m, 1], [1, M])
    out = tl.make_tensor_descriptor(y_ptr, [n, m], [m, 1], [N, M])
    out_row = tl.make_tensor_descriptor(y_ptr, [n, m], [m, 1], [1, M])
    index = tl.load(index_ptr + tl.arange(0, N))
    out.atomic_add([0, 0], whole.load([0, 0]))
    out_row.scatter(row.gather(index, 0), index, 0)


@triton.jit
def block_pointer_kernel(x_ptr, y_ptr, n, m, N: tl.constexpr, M: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (n, m), (m, 1), (0, 0), (N, M), (1, 0))
    y = tl.make_block_ptr(y_ptr, (m, n), (n, 1), (0, 0), (M, N), (1, 0))
    for _ in range(0, m, M):
        tl.store(y, tl.trans(tl.load(x, boundary_check=(0, 1), padding_option="nan")), boundary_check=(0,))
        x = tl.advance(x, (0, M))
        y = tl.advance(y, (M, 0))


@triton.jit
def first_larger(value, index, other, other_index):
    take = (value > other) | ((value == other) & (index < other_index))
    return tl.where(take, value, other), tl.where(take, index, other_index)


@triton.jit
def combine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reduce_scan_kernel(x_ptr, y_ptr, z_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    value, index = tl.reduce((x, at % N), 1, first_larger)
    a, b = tl.associative_scan((x, x + 1.0), 1, combine, reverse=True)
    tl.store(y_ptr + at, a - b)
    tl.store(z_ptr + tl.arange(0, ROWS), value + index + tl.xor_sum((at & 7), axis=1))


@triton.jit
def atomics_kernel(x_ptr, y_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1, volatile=True)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="sys") == 1:
        pass
    old = tl.atomic_max(y_ptr + i, x, mask=i < n, sem="relaxed")
    old += tl.atomic_min(y_ptr + i + n, x, mask=i < n, scope="cta")
    old ^= tl.atomic_and(y_ptr + i, x) | tl.atomic_or(y_ptr + i, old) | tl.atomic_xor(y_ptr + i, old)
    tl.store(x_ptr + i, old, mask=i < n, cache_modifier=".wt")
    tl.store(x_ptr + i + n, old, mask=i < n, eviction_policy="evict_first")
    tl.atomic_xchg(lock_ptr, 0, sem="release")


@triton.jit
def control_kernel(x_ptr, y_ptr, n, limit, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    count, last = 0, 0.0
    step = 0
    while step < n and count < limit:
        x = tl.load(x_ptr + step * BLOCK + i)
        head = tl.sum(x)
        if head > 10.0:
            count += 1
            total += x
        elif head < -10.0:
            for _ in tl.range(0, step, 2, num_stages=2, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
                total = total * 0.5 + last
        else:
            last = head
        step += 1
    if count == 0:
        tl.store(y_ptr + i, last)
        return
    tl.store(y_ptr + i, total / count)


@triton.jit
def shapes_kernel(x_ptr, y_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.reshape(tl.join(x, x * 2), (N // 4, 2, 4))
    y = tl.permute(y, (2, 0, 1))
    a, b = tl.split(y)
    z = tl.cat(tl.ravel(a), tl.ravel(b), can_reorder=True)
    z = tl.interleave(z, tl.flip(z, 0))
    tl.store(y_ptr + tl.arange(0, 8 * N), tl.reshape(tl.broadcast_to(z[:, None], (4 * N, 2)), (8 * N,)))


@triton.jit
def conversions_kernel(x_ptr, y_ptr, z_ptr, w_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x.to(tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(z_ptr + i, x.to(tl.float8e5).to(tl.int8, bitcast=True))
    wide = x.to(tl.int64)
    hi = tl.umulhi(wide.to(tl.uint64), wide.to(tl.uint64) >> 3)
    wide = (wide << 2) // 7 % 5 + (x > 0).to(tl.int64) - (x.to(tl.uint32) // 3 % 7).to(tl.int64) + hi.to(tl.int64)
    tl.store(w_ptr + i, wide.to(tl.float64) + tl.clamp(x, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL)
             + tl.fma(x, x, 1.0) + tl.div_rn(x, 3.0) + tl.sqrt_rn(tl.abs(x)))


@triton.jit
def assembly_kernel(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    low, high = tl.inline_asm_elementwise(
        asm="{ .reg .b32 t; and.b32 $0, $2, 0x0f0f0f0f; shr.b32 t, $2, 4; and.b32 $1, t, 0x0f0f0f0f; }",
        constraints="=r,=r,r", args=[x], dtype=(tl.int8, tl.int8), is_pure=True, pack=4)
    tl.store(y_ptr + i, low)
    tl.store(z_ptr + i, high)


@triton.jit
def smaller(x, y):
    if x < y:
        return x
    else:
        return y * 2


@triton.jit
def map_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.map_elementwise(smaller, x, x * x))


@triton.jit
def random_kernel(y_ptr, seed, N: tl.constexpr):
    i = tl.program_id(2) * N + tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(y_ptr + i, tl.rand(seed, i) + tl.randn(seed, i) + (a ^ b ^ c ^ d).to(tl.float32, bitcast=True)
             + tl.num_programs(1))
