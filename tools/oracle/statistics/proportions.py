"""Shares, alone and paired; the score statistic by maximised likelihood."""

import math

import mpmath
from scipy import optimize, stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from cases import case


def proportions():
    for k, n in [(0, 10), (1, 10), (7, 10), (10, 10), (123, 2000), (1, 400000)]:
        for confidence in [0.9, 0.95, 0.999]:
            case("wilsonInterval", [k, n, confidence], proportion_confint(k, n, 1 - confidence, "wilson"))
            case("clopperPearson", [k, n, confidence], proportion_confint(k, n, 1 - confidence, "beta"))
    for a, n, b, m in [(56, 70, 48, 80), (9, 10, 3, 10), (10, 10, 0, 20), (5, 56, 0, 29)]:
        interval = confint_proportions_2indep(a, n, b, m, compare="diff", method="newcomb", alpha=0.05)
        case("newcombeDifference", [{"successes": a, "trials": n}, {"successes": b, "trials": m}],
             {"estimate": a / n - b / m, "interval": interval})
    tables = [(36, 2, 12, 0), (20, 12, 2, 16), (180, 5, 3, 12), (0, 4, 1, 0), (30, 0, 0, 5), (0, 0, 9, 1), (900, 40, 25, 35)]
    for both, lost, gained, neither in tables:
        table = {"both": both, "lost": lost, "gained": gained, "neither": neither}
        for alternative in ["two-sided", "greater", "less"]:
            if lost + gained == 0:
                continue
            p = stats.binomtest(lost, lost + gained, 0.5, alternative).pvalue
            case("mcnemarExact", [{"lost": lost, "gained": gained}, alternative], {"pValue": p})
        case("signTest", [lost, gained], stats.binom.sf(lost - 1, lost + gained, 0.5))
        for margin in [0.02, 0.1]:
            z = score_statistic(table, -margin)
            case("mcnemarNonInferiority", [table, {"margin": margin, "alpha": 0.025}],
                 {"estimate": (gained - lost) / sum(table.values()), "pValue": stats.norm.sf(z),
                  "inferiorityPValue": stats.norm.cdf(z), "interval": score_interval(table, 0.95)})
        case("pairedDifference", [table, 0.9], {"interval": newcombe_paired(table, 0.9)})


def restricted_share(lost, gained, rest, difference):
    """Maximises the likelihood among tables whose gains less losses are the difference: the share lost."""
    low, high = max(mpmath.mpf(0), -difference), (1 - difference) / 2
    roots = [mpmath.re(r) for r in mpmath.polyroots(cubic(lost, gained, rest, difference), maxsteps=500, extraprec=500)]
    inside = [r for r in roots if low - mpmath.mpf("1e-25") <= r <= high + mpmath.mpf("1e-25")]

    def loglik(q):
        total = mpmath.mpf(0)
        for count, share in [(lost, q), (gained, q + difference), (rest, 1 - 2 * q - difference)]:
            if count:
                if share <= 0:
                    return -mpmath.inf
                total += count * mpmath.log(share)
        return total

    return max([*inside, low, high], key=loglik)


def score_statistic(table, difference):
    lost, gained, n = table["lost"], table["gained"], sum(table.values())
    difference = mpmath.mpf(difference)
    q = restricted_share(lost, gained, n - lost - gained, difference)
    variance = n * (2 * q + difference * (1 - difference))
    distance = gained - lost - n * difference
    if distance == 0:
        return 0.0
    # As the package corrects it: half a pair, and Cornish and Fisher's term of skewness.
    skewness = difference / (2 * q + difference)
    shift = min(mpmath.mpf("1.2"), max(0, (distance**2 / variance - 1) / 6))
    corrected = max(0, abs(distance) - mpmath.mpf("0.5") - mpmath.sign(distance) * skewness * shift)
    return float(mpmath.sign(distance) * corrected / mpmath.sqrt(variance))


def cubic(lost, gained, rest, d):
    """Coefficients in q, highest first, of lost (q + d)(1 - d - 2q) + gained q (1 - d - 2q) - 2 rest q (q + d): the
    likelihood's slope times its three denominators."""
    return [-2 * lost - 2 * gained - 2 * rest,
            lost * (1 - d - 2 * d) + gained * (1 - d) - 2 * rest * d,
            lost * d * (1 - d)]


def score_interval(table, confidence):
    z = stats.norm.ppf((1 + confidence) / 2)
    n = sum(table.values())
    estimate = (table["gained"] - table["lost"]) / n

    def end(far, level):
        if estimate == far:
            return far
        inner, outer = sorted([estimate, far * (1 - 1e-12)])
        return optimize.brentq(lambda d: score_statistic(table, d) - level, inner, outer, xtol=1e-15, rtol=1e-14)

    return [end(-1.0, z), end(1.0, -z)]


def newcombe_paired(table, confidence):
    a, b, c, d = table["both"], table["lost"], table["gained"], table["neither"]
    n = a + b + c + d
    alpha = 1 - confidence
    (l1, u1), (l2, u2) = (proportion_confint(k, n, alpha, "wilson") for k in (a + c, a + b))
    p1, p2 = (a + c) / n, (a + b) / n
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    product = a * d - b * c
    phi = 0 if margins == 0 else (max(product - n / 2, 0) if product > 0 else product) / math.sqrt(margins)
    lower = math.sqrt((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2)
    upper = math.sqrt((p2 - l2) ** 2 - 2 * phi * (p2 - l2) * (u1 - p1) + (u1 - p1) ** 2)
    return [max(-1, p1 - p2 - lower), min(1, p1 - p2 + upper)]
