"""What the cases of packages share: the rules of their parameters, references on rows in float64, tolerances."""

import numpy as np

from hebe.case import CaseError, Tolerance

#: Half a unit in the last place, relative: what rounding to the type may cost.
ROUNDING = {"fp16": 2**-11, "bf16": 2**-8, "fp32": 2**-24}


def check(dtype: str, **sizes: int) -> None:
    if dtype not in ROUNDING:
        raise CaseError(f"dtype: {dtype!r} is not one of {', '.join(ROUNDING)}")
    for name, size in sizes.items():
        if size < 1:
            raise CaseError(f"{name}: {size} is not positive")


def check_block(name: str, size: int) -> None:
    if size < 1 or size & (size - 1):
        raise CaseError(f"{name}: {size} is not a power of two")


def tolerance(dtype: str, roundings: int = 1, atol: float = 4e-6, rtol: float = 4e-6) -> Tolerance:
    """For fp32 arithmetic on values of size 1, and so many roundings to the type on the way to the output."""
    return Tolerance(atol=atol, rtol=roundings * ROUNDING[dtype] + rtol)


def wide(inputs: dict, *names: str) -> list:
    return [inputs[name].astype(np.float64) for name in names]


def fp32(**arrays: np.ndarray) -> dict:
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def moments(x: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean of every row and 1 / sqrt(variance + eps), both as columns."""
    mean = x.mean(axis=-1, keepdims=True)
    return mean, 1 / np.sqrt(np.square(x - mean).mean(axis=-1, keepdims=True) + eps)


def inverse_rms(x: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    made = np.exp(x - x.max(axis=axis, keepdims=True))
    made /= made.sum(axis=axis, keepdims=True)
    return made


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """softmax(scale q k^T) v and the scores' log_sum_exp, one head of (batch, heads, length, size) at a time."""
    out, lse = np.empty(q.shape), np.empty(q.shape[:-1])
    hidden = np.triu(np.ones((q.shape[-2],) * 2, bool), 1) if causal else False
    for head in np.ndindex(q.shape[:2]):
        scores = scale * (q[head].astype(np.float64) @ k[head].astype(np.float64).T)
        scores[hidden] = -np.inf
        lse[head] = log_sum_exp(scores)[:, 0]
        out[head] = np.exp(scores - lse[head][:, None]) @ v[head].astype(np.float64)
    return out, lse


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    """Of every row, as a column."""
    peak = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - peak).sum(axis=-1, keepdims=True)) + peak
