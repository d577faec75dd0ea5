"""References of kernels that work on rows: softmax, norms, gated units, losses, embeddings."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from launches import Launch
from references import Maker, cdiv, padded, reference, shapes


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    return np.log(np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1)) + x.max(axis=-1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


@reference("liger.softmax.fwd.fp32", "liger.softmax.fwd.fp16")
def softmax_forward(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BLOCK_SIZE"]):
        stride, out_stride = padded(n), padded(n) + 16
        x = m.real("X_ptr", rows, stride, low=-8, high=8)
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_row_stride": stride, "Y_row_stride": out_stride, "n_cols": n},
                     {"Y_ptr": m.rows(rows, out_stride, softmax(x[:, :n]))}, **m.tolerance)


@reference("liger.softmax.bwd.fp32", "liger.softmax.bwd.bf16")
def softmax_backward(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BLOCK_SIZE"]):
        stride = padded(n)
        y = m.round("y_ptr", softmax(m.random.normal(size=(rows, stride))))
        dy = m.real("dy_ptr", rows, stride)
        dx = y[:, :n] * (dy[:, :n] - (dy[:, :n] * y[:, :n]).sum(1, keepdims=True))
        yield Launch(f"{rows}x{n}", (rows,), {"dy_ptr": dy, "dy_stride": stride, "y_ptr": y, "y_stride": stride,
                                              "dx_stride": stride, "n_cols": n},
                     {"dx_ptr": m.rows(rows, stride, dx)}, **m.tolerance)


@reference("liger.layer_norm.fwd.fp32", "liger.layer_norm.fwd.fp16", "liger.layer_norm.fwd.bf16")
def layer_norm_forward(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BLOCK_SIZE"]):
        stride, eps = padded(n), float(np.float32(1e-5))
        x = m.real("X_ptr", rows, stride)
        w, b = m.real("W_ptr", n), m.real("B_ptr", n)
        mean = x[:, :n].mean(1)
        rstd = 1 / np.sqrt(x[:, :n].var(1) + eps)
        y = (x[:, :n] - mean[:, None]) * rstd[:, None] * w + b
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_row_stride": stride, "Y_row_stride": stride, "W_ptr": w, "B_ptr": b, "n_cols": n,
                      "eps": eps},
                     {"Y_ptr": m.rows(rows, stride, y), "Mean_ptr": mean, "RSTD_ptr": rstd}, **m.tolerance)


@reference("liger.layer_norm.bwd.fp32")
def layer_norm_backward(m: Maker) -> Iterator[Launch]:
    per = m["rows_per_program"]
    for rows, n in [(1, 1), (7, 100), (9, m["BLOCK_SIZE"] - 1), (6, m["BLOCK_SIZE"])]:
        stride, programs = padded(n), cdiv(rows, per)
        x, dy, w = m.real("X_ptr", rows, stride), m.real("DY_ptr", rows, stride), m.real("W_ptr", n)
        mean, rstd = m.round("Mean_ptr", x[:, :n].mean(1)), m.round("RSTD_ptr", 1 / np.sqrt(x[:, :n].var(1) + 0.1))
        hat, g = (x[:, :n] - mean[:, None]) * rstd[:, None], w * dy[:, :n]
        dx = (g - hat * (g * hat).mean(1, keepdims=True) - g.mean(1, keepdims=True)) * rstd[:, None]
        dw, db = m.blank(programs, stride), m.blank(programs, stride)
        for i in range(programs):
            part = slice(i * per, (i + 1) * per)
            dw[i, :n], db[i, :n] = (dy[part, :n] * hat[part]).sum(0), dy[part, :n].sum(0)
        yield Launch(f"{rows}x{n}", (programs,),
                     {"X_ptr": x, "stride_x": stride, "W_ptr": w, "Mean_ptr": mean, "RSTD_ptr": rstd, "stride_dx": stride,
                      "stride_dw": stride, "stride_db": stride, "DY_ptr": dy, "stride_dy": stride, "n_rows": rows,
                      "n_cols": n},
                     {"DX_ptr": m.rows(rows, stride, dx), "DW_ptr": dw, "DB_ptr": db}, atol=2e-5, rtol=2e-5)


def _rms(x: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt((x**2).mean(1) + eps)


@reference("liger.rms_norm.fwd.llama.fp32", "liger.rms_norm.fwd.llama.fp16", "liger.rms_norm.fwd.gemma.bf16",
           "liger.rms_norm.fwd.none.fp32", "liger.rms_norm.fwd_block.fp32")
def rms_norm_forward(m: Maker) -> Iterator[Launch]:
    block_rows = m.entry.constexprs.get("BLOCK_ROW", 1)
    for rows, n in shapes(m["BLOCK_SIZE"]) + ([(35, 100)] if block_rows > 1 else []):
        stride, eps, offset = padded(n), float(np.float32(1e-6)), 1.0
        x, w = m.real("X_ptr", rows, stride), m.real("W_ptr", n)
        rstd = _rms(x[:, :n], eps)
        y = x[:, :n] * rstd[:, None] * (offset + w)
        args = {"X_ptr": x, "X_row_stride": stride, "Y_row_stride": stride, "W_ptr": w, "n_cols": n, "eps": eps,
                "offset": offset}
        if block_rows > 1:
            args["n_rows"] = rows
        yield Launch(f"{rows}x{n}", (cdiv(rows, block_rows),), args,
                     {"Y_ptr": m.rows(rows, stride, y), "RSTD_ptr": rstd}, **m.tolerance)


@reference("liger.rms_norm.bwd.gemma.fp32")
def rms_norm_backward(m: Maker) -> Iterator[Launch]:
    for rows, n, per in [(1, 1, 1), (7, 100, 3), (9, m["BLOCK_SIZE"] - 1, 5), (4, m["BLOCK_SIZE"], 2)]:
        stride, programs = padded(n), cdiv(rows, per)
        x, dy, w = m.real("X_ptr", rows, stride), m.real("dY_ptr", rows, stride), m.real("W_ptr", n)
        rstd = m.round("RSTD_ptr", _rms(x[:, :n], 1e-6))
        g = dy[:, :n] * (w + 1.0)
        hat = x[:, :n] * rstd[:, None]
        dx = rstd[:, None] * (g - hat * (g * hat).mean(1, keepdims=True))
        dw = m.blank(programs, stride)
        for i in range(programs):
            dw[i, :n] = (dy[i * per:(i + 1) * per, :n] * hat[i * per:(i + 1) * per]).sum(0)
        yield Launch(f"{rows}x{n}", (programs,),
                     {"dY_ptr": dy, "dY_row_stride": stride, "dX_row_stride": stride, "X_ptr": x, "X_row_stride": stride,
                      "W_ptr": w, "RSTD_ptr": rstd, "dW_row_stride": stride, "n_rows": rows, "n_cols": n, "offset": 1.0,
                      "rows_per_program": per},
                     {"dX_ptr": m.rows(rows, stride, dx), "dW_ptr": dw}, atol=2e-5, rtol=2e-5)


@reference("liger.fused_add_rms_norm.fwd.fp32")
def fused_add_rms_norm(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BLOCK_SIZE"]):
        stride, eps = padded(n), float(np.float32(1e-6))
        x, r, w = m.real("X_ptr", rows, stride), m.real("R_ptr", rows, stride), m.real("W_ptr", n)
        s = m.round("S_ptr", x[:, :n] + r[:, :n])
        rstd = _rms(s, eps)
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_row_stride": stride, "R_ptr": r, "R_row_stride": stride, "W_ptr": w,
                      "Y_row_stride": stride, "S_row_stride": stride, "n_cols": n, "eps": eps, "offset": 0.0},
                     {"S_ptr": m.rows(rows, stride, s), "Y_ptr": m.rows(rows, stride, s * rstd[:, None] * w),
                      "RSTD_ptr": rstd}, **m.tolerance)


@reference("liger.poly_norm.fwd.fp32")
def poly_norm(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BLOCK_SIZE"]):
        stride, eps = padded(n), float(np.float32(1e-6))
        x, w, b = m.real("X_ptr", rows, stride), m.real("W_ptr", 3), m.real("B_ptr", 1)
        powers = [x[:, :n]**3, x[:, :n]**2, x[:, :n]]
        rstds = [_rms(p, eps) for p in powers]
        y = sum(w[i] * powers[i] * rstds[i][:, None] for i in range(3)) + b[0]
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_row_stride": stride, "Y_row_stride": stride, "W_ptr": w, "B_ptr": b,
                      "RSTD_row_stride": 3, "n_cols": n, "eps": eps},
                     {"Y_ptr": m.rows(rows, stride, y), "RSTD_ptr": np.stack(rstds, 1)}, **m.tolerance)


@reference("liger.group_norm.fwd.fp32")
def group_norm_forward(m: Maker) -> Iterator[Launch]:
    for batch, groups, channels, pixels in [(1, 1, 1, 1), (2, 3, 2, 35), (2, 2, 4, 64)]:
        hidden, eps = channels * pixels, float(np.float32(1e-5))
        x = m.real("X_ptr", batch, groups, hidden)
        w, b = m.real("W_ptr", groups * channels), m.real("B_ptr", groups * channels)
        mean, rstd = x.mean(2), 1 / np.sqrt(x.var(2) + eps)
        per_value = [np.repeat(v, pixels).reshape(groups, hidden) for v in (w, b)]
        y = (x - mean[..., None]) * rstd[..., None] * per_value[0] + per_value[1]
        strides = {"row": groups * hidden, "col": hidden}
        yield Launch(f"{batch}x{groups}x{channels}x{pixels}", (batch, groups),
                     {"X_ptr": x, "W_ptr": w, "B_ptr": b, "hidden_size": hidden, "channels_per_group": channels,
                      "eps": eps, "Mean_row_stride": groups, "RSTD_row_stride": groups,
                      **{f"{t}_{s}_stride": v for t in "XY" for s, v in strides.items()}},
                     {"Y_ptr": y, "Mean_ptr": mean, "RSTD_ptr": rstd}, atol=3e-5, rtol=3e-5)


@reference("liger.group_norm.bwd.fp32")
def group_norm_backward(m: Maker) -> Iterator[Launch]:
    pixels, channels = m["hidden_size"], m["channels_per_group"]
    for batch, groups in [(1, 1), (2, 3), (3, 2)]:
        shape = (batch, groups, channels, pixels)
        x, up = m.real("X_ptr", *shape), m.real("UPSTREAM_ptr", *shape)
        w = m.real("W_ptr", groups, channels)
        mean = m.round("Mean_ptr", x.mean((2, 3)))
        rstd = m.round("RSTD_ptr", 1 / np.sqrt(x.var((2, 3)) + 1e-5))
        hat = (x - mean[..., None, None]) * rstd[..., None, None]
        g = up * w[None, :, :, None]
        dx = (g - hat * (g * hat).mean((2, 3), keepdims=True) - g.mean((2, 3), keepdims=True)) * rstd[..., None, None]
        count = groups * channels
        yield Launch(f"{batch}x{groups}", (batch, groups),
                     {"X_ptr": x, "X_row_stride": count * pixels, "X_col_stride": pixels, "W_ptr": w, "Mean_ptr": mean,
                      "Mean_ptr_row_stride": groups, "RSTD_ptr": rstd, "UPSTREAM_ptr": up,
                      "DW_ptr": np.zeros(count), "DB_ptr": np.zeros(count)},
                     {"DX_ptr": dx, "DW_ptr": (up * hat).sum((0, 3)).ravel(), "DB_ptr": up.sum((0, 3)).ravel()},
                     atol=1e-4, rtol=3e-5)


@reference("liger.swiglu.fwd.fp32", "liger.swiglu.fwd.fp16")
def swiglu_forward(m: Maker) -> Iterator[Launch]:
    n = m["n_cols"]
    for rows, stride, gate in [(1, n, 1.0), (4, n + 3, 0.5)]:
        a, b = m.real("a_ptr", rows, stride), m.real("b_ptr", rows, stride)
        yield Launch(f"{rows}x{n}", (rows,), {"a_ptr": a, "b_ptr": b, "stride": stride, "gate_multiplier": gate},
                     {"c_ptr": m.rows(rows, stride, silu(a * gate)[:, :n] * b[:, :n])}, **m.tolerance)


@reference("liger.swiglu.fwd_tiled.fp32")
def swiglu_tiled(m: Maker) -> Iterator[Launch]:
    for rows, n in [(1, 1), (3, 257), (2, 700)]:
        a, b = m.real("a_ptr", rows, n + 1), m.real("b_ptr", rows, n + 1)
        yield Launch(f"{rows}x{n}", (rows, cdiv(n, m["BLOCK_SIZE"])),
                     {"a_ptr": a, "b_ptr": b, "stride": n + 1, "gate_multiplier": 1.5, "n_cols": n},
                     {"c_ptr": m.rows(rows, n + 1, silu(a * 1.5)[:, :n] * b[:, :n])}, **m.tolerance)


@reference("liger.swiglu.fused_fwd.bf16")
def swiglu_fused(m: Maker) -> Iterator[Launch]:
    n = m["ffn_size"]
    for rows in (1, 5):
        stride, out_stride = padded(2 * n), padded(n)
        y = m.real("y_ptr", rows, stride)
        c = silu(y[:, :n]) * y[:, n:2 * n]
        yield Launch(f"{rows}x{n}", (rows,), {"y_ptr": y, "in_stride": stride, "out_stride": out_stride},
                     {"c_ptr": m.rows(rows, out_stride, c)}, **m.tolerance)


@reference("liger.swiglu.bwd.fp32")
def swiglu_backward(m: Maker) -> Iterator[Launch]:
    n = m["n_cols"]
    for rows, gate in [(1, 1.0), (3, 0.5)]:
        stride = padded(n)
        a, b, dc = (m.real(name, rows, stride) for name in ("a_ptr", "b_ptr", "dc_ptr"))
        s = sigmoid(a * gate)
        da, db = a.copy(), b.copy()
        da[:, :n] = (dc * (a * gate * s * (1 - s) + s) * b * gate)[:, :n]
        db[:, :n] = (dc * silu(a * gate))[:, :n]
        yield Launch(f"{rows}x{n}", (rows,),
                     {"dc_ptr": dc, "a_ptr": a, "b_ptr": b, "stride": stride, "gate_multiplier": gate},
                     {"a_ptr": da, "b_ptr": db}, **m.tolerance)


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@reference("liger.geglu.fwd.fp32")
def geglu_forward(m: Maker) -> Iterator[Launch]:
    n = m["n_cols"]
    for rows in (1, 4):
        a, b = m.real("a", rows, n + 2), m.real("b", rows, n + 2)
        yield Launch(f"{rows}x{n}", (rows,), {"a": a, "b": b, "stride": n + 2},
                     {"c": m.rows(rows, n + 2, (_gelu_tanh(a) * b)[:, :n])}, **m.tolerance)


@reference("liger.geglu.bwd.fp32")
def geglu_backward(m: Maker) -> Iterator[Launch]:
    n, h = m["n_cols"], 1e-4
    for rows in (1, 4):
        a, b, dc = (m.real(name, rows, n + 2) for name in ("a", "b", "dc"))
        slope = (_gelu_tanh(a + h) - _gelu_tanh(a - h)) / (2 * h)  # by difference quotient: h**2 is far below fp32
        da, db = a.copy(), b.copy()
        da[:, :n], db[:, :n] = (dc * b * slope)[:, :n], (dc * _gelu_tanh(a))[:, :n]
        yield Launch(f"{rows}x{n}", (rows,), {"dc": dc, "a": a, "b": b, "stride": n + 2}, {"a": da, "b": db},
                     **m.tolerance)


@reference("liger.relu_squared.fwd.fp16")
def relu_squared(m: Maker) -> Iterator[Launch]:
    n = m["n_cols"]
    for rows in (1, 6):
        x = m.real("X_ptr", rows, n)
        yield Launch(f"{rows}x{n}", (rows,), {"X_ptr": x, "X_stride": n, "Y_stride": n + 5},
                     {"Y_ptr": m.rows(rows, n + 5, np.maximum(x, 0)**2)}, **m.tolerance)


@reference("liger.dyt.fwd.fp32")
def dynamic_tanh(m: Maker) -> Iterator[Launch]:
    n = m["N"]
    for rows in (1, 5):
        x, alpha = m.real("X", rows, n), m.real("Alpha", 1)
        gamma, beta = m.real("Gamma", n), m.real("Beta", n)
        yield Launch(f"{rows}x{n}", (cdiv(n, m["BLOCK_N"]), rows),
                     {"X": x, "Alpha": alpha, "Gamma": gamma, "Beta": beta},
                     {"Y": np.tanh(alpha * x) * gamma + beta}, **m.tolerance)


@reference("liger.rope.fwd.fp32", "liger.rope.bwd.fp32")
def rope(m: Maker) -> Iterator[Launch]:
    half, size, sign = m["rd"] // 2, m["hd"], -1 if m["BACKWARD_PASS"] else 1
    for length in (1, 5):
        rows = m["bs"] * length
        angle = m.random.uniform(0, 6, (length, size))
        cos, sin = m.round("cos", np.cos(angle)), m.round("sin", np.sin(angle))
        args = {"cos": cos, "sin": sin, "cos_row_stride": size, "sin_row_stride": size, "sl": length}
        expected = {}
        for name, heads in (("q", m["n_qh"]), ("k", m["n_kh"])):
            stride = padded(heads * size)
            x = m.real(f"{name}_ptr", rows, stride)
            y = x.copy()
            head = x[:, :heads * size].reshape(rows, heads, size)
            c, s = (np.tile(t[:, None, :half], (m["bs"], 1, 1)) for t in (cos, sign * sin))
            turned = np.concatenate([head[..., :half] * c - head[..., half:] * s,
                                     head[..., half:] * c + head[..., :half] * s], -1)
            y[:, :heads * size] = turned.reshape(rows, -1)
            args |= {f"{name}_ptr": x, f"{name}_row_stride": stride}
            expected[f"{name}_ptr"] = y
        yield Launch(f"{m['bs']}x{length}", (rows,), args, expected, **m.tolerance)


@reference("liger.cross_entropy.mean.fp32")
def cross_entropy(m: Maker) -> Iterator[Launch]:
    smooth, square, ignored = m["label_smoothing"], m["lse_square_scale"], -100
    for rows, n in [(1, 2), (4, 256), (5, 1000), (6, 513)]:
        stride = padded(n)
        x = m.round("X_ptr", m.random.normal(size=(rows, stride)) * 3)
        y = m.whole(rows, low=0, high=n)
        if rows > 1:
            y[1], y[2] = ignored, x[2, :n].argmax()
        real = y != ignored
        count = int(real.sum())
        logits, target = x[:, :n], np.where(real, y, 0)
        lse = log_sum_exp(logits)
        of_target = logits[np.arange(rows), target]
        z = square * lse**2 / count
        loss = ((1 - smooth) * (lse - of_target) + smooth * (lse - logits.mean(1))) / count + z
        grad = softmax(logits) * (1 + 2 * square * lse[:, None]) - smooth / n
        grad[np.arange(rows), target] -= 1 - smooth
        after = x.copy()
        after[:, :n] = np.where(real[:, None], grad / count, 0)
        untouched = m.blank(rows)
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_stride": stride, "Y_ptr": y, "n_cols": n, "n_non_ignore": float(count),
                      "sum_non_ignore_weight": float(count), "weight_sum": 0.0, "ignore_index": ignored},
                     {"X_ptr": after, "loss_ptr": np.where(real, loss, untouched),
                      "z_loss_ptr": np.where(real, z, untouched),
                      "token_accuracy_ptr": np.where(real, logits.argmax(1) == y, 0.0),
                      "predicted_tokens_ptr": np.where(real, logits.argmax(1), -1)}, atol=2e-5, rtol=2e-5)


@reference("liger.cross_entropy.weighted_softcap.bf16")
def cross_entropy_weighted(m: Maker) -> Iterator[Launch]:
    cap = 5.0
    for rows, n in [(2, 100), (3, 777)]:
        stride = padded(n)
        x = m.round("X_ptr", m.random.normal(size=(rows, stride)) * 3)
        y, weight = m.whole(rows, low=0, high=n), m.real("weight_ptr", n, low=0.5, high=2)
        slope = 1 - np.tanh(x[:, :n] / cap)**2
        logits, w = cap * np.tanh(x[:, :n] / cap), weight[y]
        grad = softmax(logits)
        grad[np.arange(rows), y] -= 1
        after = x.copy()
        after[:, :n] = grad * w[:, None] * slope
        loss = w * (log_sum_exp(logits) - logits[np.arange(rows), y])
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_stride": stride, "Y_ptr": y, "weight_ptr": weight, "n_cols": n,
                      "n_non_ignore": float(rows), "sum_non_ignore_weight": float(w.sum()),
                      "weight_sum": float(weight.sum()), "ignore_index": -100, "softcap": cap},
                     {"X_ptr": after, "loss_ptr": loss}, atol=1e-3, rtol=4e-3)


@reference("liger.kl_div.fwd.fp32", "liger.kl_div.fwd_log_none.fp32")
def kl_divergence(m: Maker) -> Iterator[Launch]:
    for rows, n in [(1, 1), (3, 255), (2, 600)]:
        stride = padded(n)
        y = m.round("y_ptr", np.log(softmax(m.random.normal(size=(rows, stride)))))
        target = softmax(m.random.normal(size=(rows, stride)))
        args = {"y_ptr": y, "y_stride": stride, "gt_stride": stride, "n_cols": n, "eps": 1e-10}
        if m["log_target"]:
            target = m.round("gt_ptr", np.log(target))
            loss = np.exp(target) * (target - y)
            yield Launch(f"{rows}x{n}", (rows,), {**args, "gt_ptr": target, "loss_stride": stride},
                         {"loss_ptr": m.rows(rows, stride, loss[:, :n])}, **m.tolerance)
        else:
            target = m.round("gt_ptr", target)
            loss = (target * (np.log(target) - y))[:, :n].sum(1)
            yield Launch(f"{rows}x{n}", (rows,), {**args, "gt_ptr": target}, {"loss_ptr": loss}, **m.tolerance)


@reference("liger.tvd.labels.fp32")
def total_variation(m: Maker) -> Iterator[Launch]:
    for rows, n in [(1, 1), (4, 255), (3, 600)]:
        stride, scale = padded(n), 0.25
        p = m.round("p_ptr", softmax(m.random.normal(size=(rows, stride))))
        q = m.round("q_ptr", softmax(m.random.normal(size=(rows, stride))))
        q[:, n // 2] = p[:, n // 2]
        label = np.where(np.arange(rows) == 1, -100, 5)
        kept = (label != -100)[:, None]
        loss = np.where(kept, 0.5 * np.abs(p - q), 0)[:, :n]
        grads = np.where(kept, 0.5 * scale * np.sign(p - q), 0)[:, :n]
        yield Launch(f"{rows}x{n}", (rows,),
                     {"p_ptr": p, "p_stride": stride, "q_ptr": q, "q_stride": stride, "loss_stride": stride,
                      "grads_stride": stride, "label_ptr": label, "n_cols": n, "scale": scale},
                     {"loss_ptr": m.rows(rows, stride, loss), "grads_ptr": m.rows(rows, stride, grads)}, **m.tolerance)


@reference("liger.jsd.half.fp32")
def jensen_shannon(m: Maker) -> Iterator[Launch]:
    beta = m["beta"]
    for rows, n in [(1, 1), (4, 255), (3, 600)]:
        stride = padded(n)
        x, y = (m.round(name, np.log(softmax(m.random.normal(size=(rows, stride))))) for name in ("X_ptr", "Y_ptr"))
        label = np.where(np.arange(rows) == 1, -100, 5)
        kept, count = (label != -100)[:, None], int((label != -100).sum())
        p, q = np.exp(y[:, :n]), np.exp(x[:, :n])
        mixed = np.log(beta * p + (1 - beta) * q)
        of_q = (1 - beta) * q * (x[:, :n] - mixed)
        loss = (beta * p * (y[:, :n] - mixed) + of_q) / count
        yield Launch(f"{rows}x{n}", (rows,),
                     {"X_ptr": x, "X_stride": stride, "Y_ptr": y, "Y_stride": stride, "loss_stride": stride,
                      "dX_stride": stride, "label_ptr": label, "n_non_ignore": count, "n_cols": n},
                     {"loss_ptr": m.rows(rows, stride, np.where(kept, loss, m.blank(1, 1))),
                      "dX_ptr": m.rows(rows, stride, np.where(kept, of_q / count, 0))}, **m.tolerance)


@reference("liger.sparsemax.fwd.fp32")
def sparsemax(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BLOCK_SIZE"]):
        stride = padded(n)
        x = m.real("x_ptr", rows, stride)
        low, high = x[:, :n].min(1) - 1.0, x[:, :n].max(1)  # the threshold at which what is above adds up to one
        for _ in range(200):
            middle = (low + high) / 2
            above = np.maximum(x[:, :n] - middle[:, None], 0).sum(1) > 1
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        ordered = x.copy()
        ordered[:, :n] = -np.sort(-x[:, :n], 1)
        yield Launch(f"{rows}x{n}", (rows,),
                     {"x_ptr": x, "x_stride_row": stride, "sorted_x_ptr": ordered, "sorted_x_stride_row": stride,
                      "o_stride_row": stride, "n_cols": n},
                     {"o_ptr": m.rows(rows, stride, np.maximum(x[:, :n] - low[:, None], 0))}, **m.tolerance)


@reference("liger.embedding.fwd.fp32")
def embedding_forward(m: Maker) -> Iterator[Launch]:
    n = m["embedding_dim"]
    for count in (1, 37):
        table, indices = m.real("embeddings_ptr", 20, n), m.whole(count, low=0, high=20)
        yield Launch(f"{count}", (cdiv(count, m["BLOCK_SIZE_M"]), cdiv(n, m["BLOCK_SIZE_N"])),
                     {"embeddings_ptr": table, "indices_ptr": indices, "n_elements": count},
                     {"output_ptr": table[indices]}, atol=0, rtol=0)


@reference("liger.embedding.bwd.fp32")
def embedding_backward(m: Maker) -> Iterator[Launch]:
    n = m["embedding_dim"]
    for count in (1, 37):
        grad, indices = m.real("grad_output_ptr", count, n), m.whole(count, low=0, high=7)
        table = np.zeros((9, n))
        np.add.at(table, indices, grad)
        yield Launch(f"{count}", (cdiv(count, m["BLOCK_SIZE_M"]), cdiv(n, m["BLOCK_SIZE_N"])),
                     {"grad_output_ptr": grad, "indices_ptr": indices, "n_elements": count,
                      "grad_weight_ptr": np.zeros((9, n))}, {"grad_weight_ptr": table}, atol=1e-5, rtol=1e-5)


@reference("gems.embedding.fwd.fp32")
def embedding_rows(m: Maker) -> Iterator[Launch]:
    for count in (1, 9):
        table, indices = m.real("weight_ptr", 12, m["N"]), m.whole(count, low=0, high=12)
        yield Launch(f"{count}", (count,), {"in_ptr": indices, "weight_ptr": table}, {"out_ptr": table[indices]},
                     atol=0, rtol=0)


@reference("gems.embedding.bwd.fp32")
def embedding_rows_backward(m: Maker) -> Iterator[Launch]:
    for count, padding in [(1, 3), (20, 3)]:
        grad, indices = m.real("grad_out", count, m["N"]), m.whole(count, low=0, high=5)
        table = np.zeros((6, m["N"]))
        np.add.at(table, indices, np.where((indices == padding)[:, None], 0, grad))
        yield Launch(f"{count}", (count,), {"grad_in": np.zeros_like(table), "grad_out": grad, "indices": indices,
                                            "padding_idx": padding}, {"grad_in": table}, atol=1e-5, rtol=1e-5)


@reference("gems.embedding.freq.i32")
def embedding_frequency(m: Maker) -> Iterator[Launch]:
    n = m["elem_cnt"]
    for kinds in (1, 11):
        indices = m.whole(n, low=0, high=kinds)
        yield Launch(f"{n} of {kinds}", (cdiv(n, m["INDICE_BLOCK_SIZE"]),),
                     {"indices": indices, "indices_freq": np.zeros(kinds)},
                     {"indices_freq": np.bincount(indices, minlength=kinds)})


@reference("gems.softmax.inner_one.fp32", "gems.softmax.inner_loop.fp32")
def gems_softmax(m: Maker) -> Iterator[Launch]:
    tile = m["TILE_N"]
    widths = (1, 100, tile - 1, tile) if m["ONE_TILE_PER_CTA"] else (1, tile, tile + 1, 3 * tile - 5)
    for n in widths:
        x = m.real("input_ptr", 3, n, low=-8, high=8)
        yield Launch(f"3x{n}", (3,), {"input_ptr": x, "M": 3, "N": n}, {"output_ptr": softmax(x)}, **m.tolerance)


@reference("gems.softmax.non_inner_loop.fp32")
def gems_softmax_inner_dimension(m: Maker) -> Iterator[Launch]:
    for rows, n, k in [(1, 1, 1), (2, 37, 45), (3, 16, 32)]:
        x = m.real("input_ptr", rows, n, k, low=-8, high=8)
        yield Launch(f"{rows}x{n}x{k}", (rows, cdiv(k, m["TILE_K"])), {"input_ptr": x, "M": rows, "N": n, "K": k},
                     {"output_ptr": softmax(x, 1)}, **m.tolerance)


@reference("gems.softmax.bwd_inner.fp32")
def gems_softmax_backward(m: Maker) -> Iterator[Launch]:
    for rows, n in [(4, 64), (8, 128)]:  # its loads have no `other`: whole tiles only
        y, dy = m.round("out_ptr", softmax(m.random.normal(size=(rows, n)))), m.real("out_grad_ptr", rows, n)
        yield Launch(f"{rows}x{n}", (cdiv(rows, m["TILE_M"]),), {"out_ptr": y, "out_grad_ptr": dy, "M": rows, "N": n},
                     {"in_grad_ptr": y * (dy - (y * dy).sum(1, keepdims=True))}, **m.tolerance)


@reference("gems.mean.dim.fp16")
def mean_of_rows(m: Maker) -> Iterator[Launch]:
    for rows, n in [(1, 1), (7, 65), (4, 200)]:
        x = m.real("inp", rows, n)
        yield Launch(f"{rows}x{n}", (cdiv(rows, m["BLOCK_M"]),), {"inp": x, "M": rows, "N": n}, {"out": x.mean(1)},
                     **m.tolerance)


@reference("gems.mean.non_inner.fp32")
def mean_of_middle(m: Maker) -> Iterator[Launch]:
    for rows, n, k in [(1, 1, 1), (2, 37, 45)]:
        x = m.real("input_ptr", rows, n, k)
        yield Launch(f"{rows}x{n}x{k}", (rows, cdiv(k, m["TILE_K"])), {"input_ptr": x, "M": rows, "N": n, "K": k},
                     {"output_ptr": x.mean(1)}, **m.tolerance)


@reference("gems.weightnorm.last.fp32")
def weight_norm(m: Maker) -> Iterator[Launch]:
    for rows, n in [(32, 1), (64, 45)]:  # its loads have no `other`: whole blocks of rows only
        v, g = m.real("v", rows, n), m.real("g", n)
        norm = np.sqrt((v**2).sum(0) + 1e-6)
        yield Launch(f"{rows}x{n}", (cdiv(n, m["BLOCK_COL_SIZE"]),), {"v": v, "g": g, "M": rows, "N": n, "eps": 1e-6},
                     {"output": v / norm * g, "norm": norm}, **m.tolerance)


@reference("fla.l2norm.fwd_row.fp32")
def l2_norm_rows(m: Maker) -> Iterator[Launch]:
    for rows, n in shapes(m["BD"]):
        x = m.real("x", rows, n)
        rstd = 1 / np.sqrt((x**2).sum(1) + 1e-6)
        yield Launch(f"{rows}x{n}", (rows,), {"x": x, "eps": 1e-6, "D": n}, {"y": x * rstd[:, None], "rstd": rstd},
                     **m.tolerance)


@reference("fla.l2norm.fwd.bf16")
def l2_norm_forward(m: Maker) -> Iterator[Launch]:
    for rows in (1, 16, 35):
        x = m.real("x", rows, m["D"])
        rstd = 1 / np.sqrt((x**2).sum(1) + 1e-6)
        yield Launch(f"{rows}", (cdiv(rows, m["BT"]),), {"x": x, "eps": 1e-6, "T": rows},
                     {"y": x * rstd[:, None], "rstd": rstd}, **m.tolerance)


@reference("fla.l2norm.bwd.fp32")
def l2_norm_backward(m: Maker) -> Iterator[Launch]:
    for rows in (1, 16, 35):
        x, dy = m.real("dx", rows, m["D"]), m.real("dy", rows, m["D"])
        rstd = m.round("rstd", 1 / np.sqrt((x**2).sum(1)))
        y = m.round("y", x * rstd[:, None])
        dx = (dy - y * (dy * y).sum(1, keepdims=True)) * rstd[:, None]
        yield Launch(f"{rows}", (cdiv(rows, m["BT"]),), {"y": y, "rstd": rstd, "dy": dy, "eps": 1e-6, "T": rows},
                     {"dx": dx}, **m.tolerance)


@reference("fla.softmax.fwd.fp16")
def fla_softmax(m: Maker) -> Iterator[Launch]:
    for rows in (1, 6):
        x = m.real("x", rows, m["D"], low=-8, high=8)
        yield Launch(f"{rows}", (rows,), {"x": x}, {"p": softmax(x)}, **m.tolerance)


@reference("fla.softmax.bwd.fp32")
def fla_softmax_backward(m: Maker) -> Iterator[Launch]:
    for rows in (1, 6):
        p, dp = m.round("p", softmax(m.random.normal(size=(rows, m["D"])))), m.real("dp", rows, m["D"])
        yield Launch(f"{rows}", (rows,), {"p": p, "dp": dp}, {"ds": p * (dp - (p * dp).sum(1, keepdims=True))},
                     **m.tolerance)


@reference("fla.logsumexp.fp32")
def fla_log_sum_exp(m: Maker) -> Iterator[Launch]:
    n, block = m["D"], m["B"]
    for rows in (1, 6):
        x = m.real("x", rows, n, low=-8, high=8)
        z = np.stack([log_sum_exp(x[:, at:at + block] * 0.5) for at in range(0, n, block)], 1)
        yield Launch(f"{rows}", (rows, cdiv(n, block)), {"x": x, "scale": 0.5}, {"z": z}, **m.tolerance)


@reference("fla.activations.logsigmoid.fp32", "fla.activations.swish.bf16")
def fla_activation(m: Maker) -> Iterator[Launch]:
    n = m["D"]
    for rows in (1, 40):
        x = m.real("x", rows, n + 1, low=-8, high=8)
        args = {"x": x, "stride_x_row": n + 1, "stride_y_row": n + 3, "T": rows * n}
        if "temperature" in m.entry.args:
            args["temperature"], y = 2.0, -np.log1p(np.exp(-x)) / 2
        else:
            y = silu(x)
        yield Launch(f"{rows}", (cdiv(rows * n, m["B"]),), args, {"y": m.rows(rows, n + 3, y[:, :n])}, **m.tolerance)
