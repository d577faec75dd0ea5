"""Writes reference.json: what scipy and statsmodels say about fixed data sets.

In: nothing but the seeds below; out: reference.json beside this file, read by tests/unit/measure_*_test.cpp.
Run in an environment with numpy, scipy and statsmodels (about ten seconds):
    python make_reference.py
"""

import json
import pathlib

import numpy as np
import scipy
import statsmodels
from scipy import integrate, optimize, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

RESAMPLES = 1_000_000
TEST_RESAMPLES = 200_000  # what the C++ tests use
STANDARD_ERRORS = 4
MARGIN = float(np.log1p(0.005))


def data_sets():
    """Log ratios of about the size of real ones."""
    rng = np.random.default_rng(20240611)
    outlier = rng.normal(0.002, 0.004, 12)
    outlier[7] = 0.045
    sets = {
        "small_4": rng.normal(0.004, 0.003, 4),
        "normal_12": rng.normal(0.003, 0.004, 12),
        "normal_20": rng.normal(-0.001, 0.005, 20),
        "normal_40": rng.normal(0.0005, 0.003, 40),
        "skewed_12": rng.lognormal(-6, 1.0, 12),
        "skewed_40": rng.lognormal(-6, 0.8, 40) - 0.003,
        "ties_16": rng.integers(-2, 4, 16) * 0.001,
        "outlier_12": outlier,
    }
    # Rounded, so that the JSON is short and holds exactly what was analysed.
    return {name: np.round(x, 9) for name, x in sets.items()}


def ends_of(distribution, z, z0, a, standard_errors):
    """Both ends, with z0 and the fractions moved together by so many of their Monte-Carlo errors."""
    per_resample = (1 / RESAMPLES + 1 / TEST_RESAMPLES) ** 0.5
    z0 = z0 + standard_errors * 0.5 * per_resample / stats.norm.pdf(0)
    fractions = stats.norm.cdf([z0 + (z0 + s) / (1 - a * (z0 + s)) for s in (-z, z)])
    fractions += standard_errors * per_resample * np.sqrt(fractions * (1 - fractions))
    return np.percentile(distribution, np.clip(fractions, 0, 1) * 100)


def bca_from(distribution, x, z):
    """BCa ends for a nominal normal quantile z, written from Efron (1987), not from the C++ code.

    from/to bracket what another generator can get: a fixed tolerance would be too tight in the gaps
    between the lumps of a discrete distribution and too wide elsewhere.
    """
    mean = x.mean()
    tie = 1e-13 * np.abs(x - mean).sum()
    below = np.mean(distribution < mean - tie)
    up_to = np.mean(distribution <= mean + tie)
    z0 = stats.norm.ppf((below + up_to) / 2)
    jackknife = np.array([np.delete(x, i).mean() for i in range(len(x))])
    d = jackknife.mean() - jackknife
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    low, high = ends_of(distribution, z, z0, a, 0)
    low_from, high_from = ends_of(distribution, z, z0, a, -STANDARD_ERRORS)
    low_to, high_to = ends_of(distribution, z, z0, a, STANDARD_ERRORS)
    return {"low": low, "low_from": low_from, "low_to": low_to, "high": high,
            "high_from": high_from, "high_to": high_to, "z0": z0, "acceleration": a}


def bootstrap_of(x, seed):
    got = stats.bootstrap((x,), np.mean, n_resamples=RESAMPLES, batch=50_000, method="BCa",
                          confidence_level=0.95, rng=np.random.default_rng(seed))
    n, distribution = len(x), got.bootstrap_distribution
    plain = bca_from(distribution, x, stats.norm.isf(0.025))
    corrected = bca_from(distribution, x, np.sqrt(n / (n - 1)) * stats.t.isf(0.025, n - 1))
    scipys = got.confidence_interval
    # The same but for ties, which scipy's rounding decides.
    assert plain["low_from"] <= scipys.low <= plain["low_to"]
    assert plain["high_from"] <= scipys.high <= plain["high_to"]
    plain["low"], plain["high"] = scipys.low, scipys.high
    return {"plain": plain, "corrected": corrected}


def t_interval_of(x, level):
    interval = stats.ttest_1samp(x, 0).confidence_interval(level)
    return {"level": level, "low": interval.low, "high": interval.high}


def sign_flip_of(x):
    if len(x) > 20:
        return None
    return stats.permutation_test((x,), np.mean, permutation_type="samples", n_resamples=np.inf,
                                  batch=50_000, vectorized=True).pvalue


def record_of(name, x, seed):
    welch = stats.ttest_ind(x[::2], x[1::2], equal_var=False)
    line = stats.linregress(np.arange(len(x)), x)
    return {
        "name": name,
        "x": list(x),
        "summary": {"mean": x.mean(), "sd": x.std(ddof=1), "median": np.median(x),
                    "cv": stats.variation(x, ddof=1)},
        "t_intervals": [t_interval_of(x, level) for level in (0.5, 0.9, 0.95, 0.999)],
        "bca": bootstrap_of(x, seed),
        "tost": {"margin": MARGIN,
                 "p_lower": stats.ttest_1samp(x, -MARGIN, alternative="greater").pvalue,
                 "p_upper": stats.ttest_1samp(x, MARGIN, alternative="less").pvalue},
        "sign_flip_p": sign_flip_of(x),
        "welch_even_odd": {"t": welch.statistic, "df": welch.df, "p": welch.pvalue},
        "trend": {"slope": line.slope, "t": line.slope / line.stderr, "p": line.pvalue},
    }


def holm_cases():
    cases = [[0.01, 0.04, 0.03, 0.005], [0.5], [0.2, 0.2, 0.2], [1.0, 0.0, 0.9, 0.02, 0.02],
             [0.04, 0.001, 0.3, 0.012, 0.049, 0.00001, 0.6]]
    return [{"p": p, "adjusted": list(multipletests(p, method="holm")[1])} for p in cases]


def power_cases():
    """Effect in sd. n is what statsmodels solves for, real-valued: the answer is the next integer."""
    tests = TTestPower()
    cases = []
    for ratio in (0.05, 0.2, 0.5, 1.0, 1.5, 2.5):
        for alpha, power in ((0.05, 0.9), (0.05, 0.8), (0.01, 0.95)):
            n = tests.solve_power(effect_size=ratio, alpha=alpha, power=power)
            cases.append({"ratio": ratio, "alpha": alpha, "power": power, "n": float(np.squeeze(n))})
    return cases


def detectable_cases():
    """By brentq on scipy's noncentral t, because statsmodels' solve_power stops at six digits."""

    def power_of(ratio, n):
        critical, shift = stats.t.isf(0.025, n - 1), ratio * n**0.5
        wrong_side = np.nan_to_num(stats.nct.cdf(-critical, n - 1, shift))  # NaN where it is below 1e-19
        return stats.nct.sf(critical, n - 1, shift) + wrong_side

    def ratio_for(n, power):
        return optimize.brentq(lambda r: power_of(r, n) - power, 0.01, 30 / n**0.5, xtol=1e-13)

    return [{"n": n, "alpha": 0.05, "power": power, "ratio": ratio_for(n, power)}
            for n in (2, 4, 12, 20, 100) for power in (0.8, 0.9)]


def tost_power(n, margin, truth, alpha):
    """Integrates over the sample mean, where the C++ code integrates over the sample sd."""
    critical = stats.t.isf(alpha, n - 1)

    def density(mean):
        room = margin - abs(mean)
        enough = stats.chi2.cdf((n - 1) * (room * n**0.5 / critical) ** 2, n - 1)
        return enough * stats.norm.pdf(mean, truth, n**-0.5)

    width = 9 / n**0.5
    low, high = max(-margin, truth - width), min(margin, truth + width)
    return integrate.quad(density, low, high, points=[0.0] if low < 0 < high else None,
                          epsabs=1e-11, limit=400)[0]


def equivalence_cases():
    """Margin and true effect in sd; by trying n = 2, 3, 4 ..."""
    cases = []
    for margin, truth in ((5.0, 0.0), (2.0, 0.0), (1.0, 0.0), (1.0, 0.4), (0.5, -0.2), (0.3, 0.0)):
        for alpha, power in ((0.05, 0.9), (0.025, 0.8)):
            n = 2
            while tost_power(n, margin, truth, alpha) < power:
                n += 1
            cases.append({"margin": margin, "truth": truth, "alpha": alpha, "power": power, "n": n})
    return cases


def main():
    reference = {
        "made_with": {"numpy": np.__version__, "scipy": scipy.__version__,
                      "statsmodels": statsmodels.__version__, "bootstrap_resamples": RESAMPLES},
        "samples": [record_of(name, x, seed)
                    for seed, (name, x) in enumerate(data_sets().items())],
        "holm": holm_cases(),
        "pairs_needed": power_cases(),
        "detectable_effect": detectable_cases(),
        "pairs_needed_for_equivalence": equivalence_cases(),
    }
    target = pathlib.Path(__file__).with_name("reference.json")
    target.write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main()
