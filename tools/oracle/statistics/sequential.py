"""Looks before the end, by integration, and sample sizes."""

import itertools
import math

import mpmath
import numpy as np
from scipy import integrate, optimize, stats

from cases import case
from proportions import restricted_share


def sequential():
    """Two looks by adaptive integration of the bivariate normal density."""
    for spending, sides, alpha, first in [("obrien-fleming", 2, 0.05, 0.5), ("pocock", 2, 0.05, 0.3), ("obrien-fleming", 1, 0.025, 0.7)]:
        per_side = alpha / sides
        if spending == "pocock":
            spent = per_side * math.log(1 + (math.e - 1) * first)
        else:
            spent = 2 * stats.norm.sf(stats.norm.ppf(1 - per_side / 2) / math.sqrt(first))
        c1 = stats.norm.isf(spent)
        root = math.sqrt(first)

        def crossing(c2):
            low = -c1 if sides == 2 else -12
            inner = lambda u: stats.norm.pdf(u) * stats.norm.sf((c2 - root * u) / math.sqrt(1 - first))
            return integrate.quad(inner, low, c1, epsabs=1e-15, epsrel=1e-13, limit=400)[0]

        c2 = optimize.brentq(lambda c: crossing(c) - (per_side - spent), 0.5, 6, xtol=1e-14, rtol=1e-14)
        case("groupSequential", [{"looks": [100 * first, 100], "alpha": alpha, "spending": spending, "sides": sides}],
             [{"z": c1, "spent": sides * spent}, {"z": c2, "spent": alpha}])


    # A third look: what is left after two, by a product rule over the plane.
    fractions = [0.25, 0.6, 1]
    spent = [2 * stats.norm.sf(stats.norm.ppf(1 - 0.0125) / math.sqrt(t)) for t in fractions[:2]] + [0.025]
    c1 = stats.norm.isf(spent[0])
    nodes, weights = np.polynomial.legendre.leggauss(300)
    z1, w1 = c1 * nodes, c1 * weights
    step = math.sqrt(fractions[1] - fractions[0])
    after = lambda z: (z * math.sqrt(fractions[1]) - z1 * math.sqrt(fractions[0])) / step
    c2 = optimize.brentq(lambda c: w1 @ (stats.norm.pdf(z1) * stats.norm.sf(after(c))) - (spent[1] - spent[0]), 1, 9, xtol=1e-14, rtol=1e-14)
    z2, w2 = c2 * nodes, c2 * weights
    density = np.array([w1 @ (stats.norm.pdf(z1) * stats.norm.pdf(after(z))) for z in z2]) * math.sqrt(fractions[1]) / step
    last = lambda c: (c - z2 * math.sqrt(fractions[1])) / math.sqrt(1 - fractions[1])
    c3 = optimize.brentq(lambda c: w2 @ (density * stats.norm.sf(last(c))) - (spent[2] - spent[1]), 1, 9, xtol=1e-14, rtol=1e-14)
    case("groupSequential", [{"looks": [50, 120, 200], "alpha": 0.05}], [{"z": c1}, {"z": c2}, {"z": c3, "spent": 0.05}])


def planning():
    z = lambda p: stats.norm.ppf(p)
    for f, d in [(0.1, 0.02), (0.05, 0.03), (0.2, -0.1)]:
        case("pairsForDifference", [{"discordance": f, "difference": d}], math.ceil((z(0.975) + z(0.8)) ** 2 * (f - d * d) / d**2))
    for f, m, d in [(0.1, 0.02, 0), (0.05, 0.03, 0.01), (0.2, 0.05, -0.02)]:
        q = restricted_share((f - d) / 2, (f + d) / 2, 1 - f, -mpmath.mpf(m))
        needed = z(0.975) * mpmath.sqrt(2 * q - m * (1 + m)) + z(0.9) * math.sqrt(f - d * d)
        short = 0.5 - m / (2 * q - m) * (z(0.975) ** 2 - 1) / 6
        case("pairsForNonInferiority", [{"discordance": f, "margin": m, "difference": d, "power": 0.9}],
             next(n for n in itertools.count(1) if n * (m + d) - short >= math.sqrt(n) * needed))
    for level, confidence in [(0.99, 0.975), (0.99, 0.95), (0.95, 0.975), (0.5, 0.9), (0.05, 0.975)]:
        far = max(level, 1 - level)
        case("requestsForQuantileBound", [level, confidence], next(n for n in range(1, 10000) if 1 - far**n >= confidence))
