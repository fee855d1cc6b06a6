"""Sample sizes."""

import itertools
import math

import mpmath
from scipy import stats

from cases import case
from proportions import restricted_share


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
