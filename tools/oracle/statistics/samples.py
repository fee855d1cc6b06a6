"""Means, ranks, distances and quantiles of samples."""

import math

import numpy as np
from scipy import special, stats

from cases import case


def means_and_ranks(rng):
    normal = lambda n, m=0.0, s=1.0: np.round(rng.normal(m, s, n), 3)
    for a, b in [(normal(8), normal(12, 0.8, 2)), (normal(3), normal(40, 0.1)), (normal(2), normal(2, 3))]:
        result = stats.ttest_ind(a, b, equal_var=False)
        case("welchTTest", [a, b], {"estimate": a.mean() - b.mean(), "statistic": result.statistic, "pValue": result.pvalue,
             "degreesOfFreedom": result.df, "interval": result.confidence_interval(0.95)})
        case("welchTTest", [a, b, {"alternative": "less"}],
             {"pValue": stats.ttest_ind(a, b, equal_var=False, alternative="less").pvalue})
    for d in [normal(5, 0.5), normal(200, 0.05), normal(2, 1)]:
        result = stats.ttest_1samp(d, 0)
        case("pairedTTest", [d, {"confidence": 0.99}], {"statistic": result.statistic, "pValue": result.pvalue,
             "interval": result.confidence_interval(0.99)})
        case("meanInterval", [d, 0.9], {"estimate": d.mean(),
             "interval": stats.t.interval(0.9, len(d) - 1, d.mean(), d.std(ddof=1) / math.sqrt(len(d)))})
        case("variance", [d], d.var(ddof=1))
    for a, b in [(normal(5), normal(9, 1)), (normal(60), normal(45, 0.6)), (normal(300), normal(200, 0.05))]:
        result = stats.ks_2samp(a, b, method="exact")
        case("kolmogorovSmirnov", [a, b], {"statistic": result.statistic, "pValue": result.pvalue, "method": "exact"})
    a, b = normal(1100), normal(1000, 0.06)
    statistic = stats.ks_2samp(a, b).statistic
    case("kolmogorovSmirnov", [a, b], {"statistic": statistic, "method": "asymptotic",
         "pValue": special.kolmogorov(statistic * math.sqrt(1100 * 1000 / 2100))})
    for a, b in [(normal(40), normal(40, 0.5)), (np.round(rng.normal(0, 1, 25), 0), np.round(rng.normal(0, 1, 30), 0))]:
        case("wasserstein", [a, b], stats.wasserstein_distance(a, b))
    for level in [0, 0.05, 0.5, 0.9, 0.95, 0.99, 1]:
        case("quantile", [normal_20 := np.round(rng.exponential(100, 20), 2), level], np.quantile(normal_20, level, method="inverted_cdf"))
    for n, level, confidence in [(400, 0.99, 0.95), (368, 0.99, 0.95), (50, 0.5, 0.9), (120, 0.95, 0.95), (30, 0.2, 0.8)]:
        values = np.round(rng.exponential(100, n), 4)
        case("quantileInterval", [values, level, confidence], quantile_interval(values, level, confidence))
    case("tailMean", [[5, 1, 4, 2, 3, 9, 8, 7, 6, 10], 0.75], (10 + 9 + 8 / 2) / 2.5)
    case("tailMean", [[5, 1, 4, 2, 3, 9, 8, 7, 6, 10], 0.8, "lower"], 1.5)


def quantile_interval(values, level, confidence):
    """Every pair of ranks whose tails are each small enough; the closest."""
    n, tail = len(values), (1 - confidence) / 2
    ordered = np.sort(values)
    lower = max(r for r in range(1, n + 1) if stats.binom.cdf(r - 1, n, level) <= tail)
    upper = min(r for r in range(1, n + 1) if stats.binom.sf(r - 1, n, level) <= tail * (1 + 1e-12))
    return [ordered[lower - 1], ordered[upper - 1]]
