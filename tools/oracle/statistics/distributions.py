"""Densities, tails and quantiles, to 50 digits."""

import math

import mpmath
from scipy import special, stats

from cases import case


def distributions():
    for x in [-38, -12.5, -5.7, -5.6, -1.959964, -0.7, -0.6, 0, 0.25, 1, 3, 6]:
        case("normalCdf", [x], mpmath.ncdf(mpmath.mpf(x)))
        case("normalPdf", [x], mpmath.npdf(mpmath.mpf(x)))
    for p in [1e-300, 1e-30, 1e-7, 0.0013, 0.025, 0.074, 0.076, 0.3, 0.5, 0.925, 0.975, 0.999999]:
        def distance(x, p=p):
            return mpmath.log(mpmath.ncdf(x)) - mpmath.log(mpmath.mpf(p))
        case("normalQuantile", [p], mpmath.findroot(distance, stats.norm.ppf(p)))
    for x in [1e-5, 0.2, 0.5, 1.3, 4.5, 12, 171.6, 1e5, 1e9]:
        case("lnGamma", [x], mpmath.loggamma(mpmath.mpf(x)))
    shapes = [(0.5, 0.5, 0.2), (2, 3, 0.1), (0.02, 8, 0.7), (40, 60, 0.4), (40, 60, 0.7), (800, 0.5, 0.995),
              (1500, 1000, 0.61), (3, 500, 1e-5), (1, 1, 0.25), (1e5, 1e5, 0.4985), (0.001, 0.002, 0.5)]
    for a, b, x in shapes:
        # mpmath's series does not reach that far.
        exact = special.betainc(a, b, x) if a > 1e4 else mpmath.betainc(a, b, 0, mpmath.mpf(x), regularized=True)
        case("regularizedIncompleteBeta", [a, b, x], exact)
        case("betaCdf", [x, a, b], exact)
    for a, x in [(0.5, 0.1), (0.5, 8), (3, 2), (3, 30), (120, 100), (120, 160), (0.01, 1e-6), (5000, 5050)]:
        case("regularizedIncompleteGamma", [a, x], mpmath.gammainc(a, 0, mpmath.mpf(x), regularized=True))
    for p in [1e-12, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.9999]:
        for degrees in [1, 2, 4.7, 30, 1000]:
            case("studentTQuantile", [p, degrees], t_quantile(p, degrees))
        for degrees in [0.5, 1, 3, 50, 2000]:
            case("chiSquareQuantile", [p, degrees], chi_square_quantile(p, degrees))
        for a, b in [(0.5, 0.5), (3, 8), (1, 100000), (250, 30)]:
            odds = beta_odds(p, a, b)
            case("betaQuantile", [p, a, b], odds / (1 + odds))
    for t, degrees in [(-40, 3), (-2.2, 1), (-1, 7.5), (0.3, 2), (2, 400), (5, 12)]:
        x = mpmath.mpf(degrees) / (degrees + mpmath.mpf(t) ** 2)
        tail = mpmath.betainc(mpmath.mpf(degrees) / 2, 0.5, 0, x, regularized=True) / 2
        case("studentTCdf", [t, degrees], tail if t < 0 else 1 - tail)
    for x, degrees in [(0.01, 1), (3.2, 4), (90, 60), (1000, 1100)]:
        case("chiSquareCdf", [x, degrees], mpmath.gammainc(mpmath.mpf(degrees) / 2, 0, mpmath.mpf(x) / 2, regularized=True))
    for k, n, p in [(0, 10, 0.2), (3, 10, 0.2), (10, 10, 0.9), (480, 1000, 0.5), (5, 2000000, 1e-6), (999000, 1000000, 0.999)]:
        exact = mpmath.mpf(p)
        case("binomialPmf", [k, n, p], mpmath.binomial(n, k) * exact**k * (1 - exact) ** (n - k))
        if n <= 1000:
            terms = [mpmath.binomial(n, i) * exact**i * (1 - exact) ** (n - i) for i in range(n + 1)]
            case("binomialCdf", [k, n, p], sum(terms[: k + 1]))
            case("binomialTail", [k, n, p], sum(terms[k:]))
    for level, n, p in [(0.5, 10, 0.2), (0.975, 400, 0.99), (0.025, 400, 0.99), (0, 9, 0.5), (1, 9, 0.5)]:
        case("binomialQuantile", [level, n, p], max(0, int(stats.binom.ppf(level, n, p))))
    for n, k in [(5, 2), (60, 30), (1000, 3), (2000, 900), (7, 0)]:
        case("lnChoose", [n, k], mpmath.log(mpmath.binomial(n, k)))


def solve_log(f, start):
    return mpmath.findroot(f, (mpmath.mpf(start) - mpmath.mpf("1e-4"), mpmath.mpf(start) + mpmath.mpf("1e-4")))


def beta_odds(p, a, b):
    """x / (1 - x) of the quantile, from the tail that is the smaller one."""
    p, a, b = mpmath.mpf(p), mpmath.mpf(a), mpmath.mpf(b)

    def tails(logit):
        odds = mpmath.exp(logit)
        if p <= 0.5:
            return mpmath.log(mpmath.betainc(a, b, 0, odds / (1 + odds), regularized=True)) - mpmath.log(p)
        return mpmath.log(mpmath.betainc(b, a, 0, 1 / (1 + odds), regularized=True)) - mpmath.log(1 - p)

    x = special.betaincinv(float(a), float(b), float(p))
    y = special.betaincinv(float(b), float(a), float(1 - p)) if x > 0.5 else 1 - x
    return mpmath.exp(solve_log(tails, math.log(x) - math.log(y)))


def t_quantile(p, degrees):
    if p == 0.5:
        return 0
    tail = min(p, 1 - p)
    size = mpmath.sqrt(degrees / beta_odds(2 * tail, degrees / 2, 0.5)) if 2 * tail < 1 else 0
    return -size if p < 0.5 else size


def chi_square_quantile(p, degrees):
    shape, p = mpmath.mpf(degrees) / 2, mpmath.mpf(p)

    def distance(log):
        if p <= 0.5:
            return mpmath.log(mpmath.gammainc(shape, 0, mpmath.exp(log), regularized=True)) - mpmath.log(p)
        return mpmath.log(mpmath.gammainc(shape, mpmath.exp(log), mpmath.inf, regularized=True)) - mpmath.log(1 - p)

    start = special.gammaincinv(float(shape), float(p)) if p <= 0.5 else special.gammainccinv(float(shape), float(1 - p))
    return 2 * mpmath.exp(solve_log(distance, math.log(start)))
