"""Writes packages/statistics/fixtures/reference.json: calls of the statistics package and what they must return.

Figures come from SciPy and statsmodels where these have the method; otherwise from its definition, by brute force
(all permutations, maximised likelihoods, numeric integration), never by the formula that the package uses.
"""

import itertools
import json
import math
import pathlib

import mpmath
import numpy as np
import scipy
import statsmodels
import statsmodels.api as sm
from scipy import integrate, optimize, special, stats
from scipy.spatial.distance import jensenshannon
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

mpmath.mp.dps = 50
cases = []


def plain(value):
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, (np.floating, mpmath.mpf)):
        return float(value)
    return int(value) if isinstance(value, np.integer) else value


def case(name, arguments, expected, **more):
    """`expected` may leave fields of the result out; `tolerance` is relative, 1e-9 unless given."""
    cases.append({"call": name, "arguments": plain(arguments), "expected": plain(expected), **more})


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
        for a, b in [(1, 1), (3, 12), (10, 2.5), (200, 400)]:
            odds = beta_odds(p, a / 2, b / 2)
            case("fQuantile", [p, a, b], odds * b / a)
        for a, b in [(0.5, 0.5), (3, 8), (1, 100000), (250, 30)]:
            odds = beta_odds(p, a, b)
            case("betaQuantile", [p, a, b], odds / (1 + odds))
    for t, degrees in [(-40, 3), (-2.2, 1), (-1, 7.5), (0.3, 2), (2, 400), (5, 12)]:
        x = mpmath.mpf(degrees) / (degrees + mpmath.mpf(t) ** 2)
        tail = mpmath.betainc(mpmath.mpf(degrees) / 2, 0.5, 0, x, regularized=True) / 2
        case("studentTCdf", [t, degrees], tail if t < 0 else 1 - tail)
    for x, degrees in [(0.01, 1), (3.2, 4), (90, 60), (1000, 1100)]:
        case("chiSquareCdf", [x, degrees], mpmath.gammainc(mpmath.mpf(degrees) / 2, 0, mpmath.mpf(x) / 2, regularized=True))
    for x, a, b in [(0.1, 2, 5), (1, 3, 3), (4.2, 7, 120), (0.9, 300, 200)]:
        y = mpmath.mpf(a) * mpmath.mpf(x) / (mpmath.mpf(a) * mpmath.mpf(x) + b)
        case("fCdf", [x, a, b], mpmath.betainc(mpmath.mpf(a) / 2, mpmath.mpf(b) / 2, 0, y, regularized=True))
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
    for k, m in [(0, 3.5), (4, 3.5), (900, 1000), (1100, 1000), (30, 2)]:
        terms = [mpmath.exp(-mpmath.mpf(m)) * mpmath.mpf(m) ** i / mpmath.factorial(i) for i in range(k + 1)]
        case("poissonPmf", [k, m], terms[-1])
        case("poissonCdf", [k, m], sum(terms))
        case("poissonTail", [k, m], 1 - sum(terms[:-1]))


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


def proportions():
    for k, n in [(0, 10), (1, 10), (7, 10), (10, 10), (123, 2000), (1, 400000)]:
        for confidence in [0.9, 0.95, 0.999]:
            case("wilsonInterval", [k, n, confidence], proportion_confint(k, n, 1 - confidence, "wilson"))
            case("clopperPearson", [k, n, confidence], proportion_confint(k, n, 1 - confidence, "beta"))
    for a, n, b, m in [(56, 70, 48, 80), (9, 10, 3, 10), (10, 10, 0, 20), (5, 56, 0, 29)]:
        interval = confint_proportions_2indep(a, n, b, m, compare="diff", method="newcomb", alpha=0.05)
        case("newcombeDifference", [{"successes": a, "trials": n}, {"successes": b, "trials": m}],
             {"estimate": a / n - b / m, "interval": interval})
        case("fisherExact", [{"successes": a, "trials": n}, {"successes": b, "trials": m}],
             {"pValue": stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue})
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
    for d in [normal(6, 0.4), normal(30, 0.3), np.round(rng.normal(-0.2, 1, 48), 6)]:
        assert len(set(np.abs(d))) == len(d)
        for alternative in ["two-sided", "less", "greater"]:
            result = stats.wilcoxon(d, method="exact", alternative=alternative)
            case("wilcoxonSignedRank", [d, alternative], {"pValue": result.pvalue, "method": "exact"})
    tied = [1, 1, -2, 3, 3, -3, 5, 0, 2, -1, 4, 4]
    case("wilcoxonSignedRank", [tied, "greater"], {"pValue": signed_rank_by_force(tied), "method": "exact"})
    many = np.round(rng.normal(0.1, 1, 180), 1)
    case("wilcoxonSignedRank", [many], {"method": "normal",
         "pValue": stats.wilcoxon(many, method="asymptotic", correction=True, zero_method="wilcox").pvalue})
    for a, b in [(normal(4), normal(7, 1)), (normal(20), normal(25, 0.4))]:
        for alternative in ["two-sided", "less", "greater"]:
            result = stats.mannwhitneyu(a, b, method="exact", alternative=alternative)
            case("mannWhitney", [a, b, alternative], {"statistic": result.statistic, "pValue": result.pvalue, "method": "exact"})
    a, b = [1, 2, 2, 3, 5], [2, 3, 3, 6, 7, 7]
    case("mannWhitney", [a, b, "less"], {"pValue": rank_sum_by_force(a, b), "method": "exact"})
    a, b = np.round(rng.normal(0, 1, 70), 1), np.round(rng.normal(0.3, 1, 50), 1)
    for alternative in ["two-sided", "less", "greater"]:
        result = stats.mannwhitneyu(a, b, method="asymptotic", alternative=alternative)
        case("mannWhitney", [a, b, alternative], {"statistic": result.statistic, "pValue": result.pvalue, "method": "normal"})
    for a, b in [(normal(5), normal(9, 1)), (normal(60), normal(45, 0.6)), (normal(300), normal(200, 0.05))]:
        result = stats.ks_2samp(a, b, method="exact")
        case("kolmogorovSmirnov", [a, b], {"statistic": result.statistic, "pValue": result.pvalue, "method": "exact"})
    a, b = normal(1100), normal(1000, 0.06)
    statistic = stats.ks_2samp(a, b).statistic
    case("kolmogorovSmirnov", [a, b], {"statistic": statistic, "method": "asymptotic",
         "pValue": special.kolmogorov(statistic * math.sqrt(1100 * 1000 / 2100))})
    for a, b in [(normal(40), normal(40, 0.5)), (np.round(rng.normal(0, 1, 25), 0), np.round(rng.normal(0, 1, 30), 0))]:
        r = stats.spearmanr(a[:25], b[:25])
        case("spearman", [a[:25], b[:25]], {"estimate": r.statistic, "pValue": r.pvalue})
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


def signed_rank_by_force(differences):
    moved = [d for d in differences if d != 0]
    ranks = stats.rankdata(np.abs(moved))
    seen = sum(r for r, d in zip(ranks, moved) if d > 0)
    sums = [sum(r for r, s in zip(ranks, signs) if s) for signs in itertools.product([0, 1], repeat=len(moved))]
    return float(np.mean([s >= seen - 1e-9 for s in sums]))


def rank_sum_by_force(a, b):
    ranks = stats.rankdata([*a, *b])
    seen = sum(ranks[: len(a)])
    sums = [sum(ranks[list(chosen)]) for chosen in itertools.combinations(range(len(ranks)), len(a))]
    return float(np.mean([s <= seen + 1e-9 for s in sums]))


def several_tests():
    for p in [[0.01, 0.04, 0.03, 0.005], [0.5, 0.02, 0.02, 0.9, 0.011, 1, 0.3], [0.2], [0.001, 0.0099, 0.0101, 0.04, 0.05, 0.06]]:
        for name, method in [("holm", "holm"), ("hochberg", "simes-hochberg"), ("hommel", "hommel"), ("benjaminiHochberg", "fdr_bh")]:
            case(name, [p], multipletests(p, method=method)[1])


def counts():
    for a, b in [([20, 30, 50], [25, 35, 40]), ([5, 0, 0, 9], [3, 0, 4, 2])]:
        kept = [(x, y) for x, y in zip(a, b) if x + y > 0]
        result = stats.chi2_contingency(np.array(kept).T, correction=False)
        case("chiSquareHomogeneity", [a, b], {"statistic": result.statistic, "pValue": result.pvalue, "degreesOfFreedom": result.dof})
        case("jensenShannon", [a, b], jensenshannon(a, b, base=2))
        case("jensenShannon", [a, b, "e"], jensenshannon(a, b))
        p, q = (np.maximum(1e-4, np.array(x) / sum(x)) for x in (a, b))
        case("populationStability", [a, b], float(np.sum((q - p) * np.log(q / p))))
    for (x, s), (y, t) in [((12, 60), (30, 60)), ((5, 10), (0, 20)), ((100, 3), (400, 15))]:
        low, high = proportion_confint(x, x + y, 0.05, "beta")
        share = s / (s + t)
        p = min(1, 2 * min(stats.binom.cdf(x, x + y, share), stats.binom.sf(x - 1, x + y, share)))
        expected = {"pValue": p}
        if y > 0:
            expected |= {"estimate": (x / s) / (y / t), "interval": [low / (1 - low) * t / s, high / (1 - high) * t / s]}
        case("poissonRateRatio", [{"count": x, "exposure": s}, {"count": y, "exposure": t}], expected)
    arrivals = [3, 5, 0, 12, 4, 1, 9, 2]
    index = np.var(arrivals, ddof=1) / np.mean(arrivals)
    case("dispersionTest", [arrivals], {"index": index, "pValue": stats.chi2.sf(7 * index, 7)})


def agreement(rng):
    for table in [[[40, 9], [6, 45]], [[10, 2, 0], [1, 12, 3], [0, 4, 8]]]:
        for weights in ["none", "linear", "quadratic"]:
            r = cohens_kappa(np.array(table), wt=None if weights == "none" else weights)
            case("cohenKappa", [table, {"weights": weights}], {"kappa": r.kappa, "standardError": r.std_kappa})
    labels = rng.binomial(1, 0.7, 40).astype(float)
    judged = np.round(np.clip(labels * 0.3 + rng.uniform(0, 0.7, 40), 0, 1), 3)
    others = np.round(rng.uniform(0, 1, 300), 3)
    pooled = np.var([*judged, *others], ddof=1)
    reliance = np.cov(labels, judged)[0, 1] / ((1 + 40 / 300) * pooled)
    assert 0 < reliance < 1
    spread = np.var(labels - reliance * judged, ddof=1) / 40 + reliance**2 * np.var(others, ddof=1) / 300
    estimate = reliance * others.mean() + (labels - reliance * judged).mean()
    half = stats.norm.ppf(0.975) * math.sqrt(spread)
    case("predictionPoweredMean", [{"labels": labels, "judgedLabelled": judged, "judgedOnly": others}],
         {"reliance": reliance, "estimate": estimate, "interval": [estimate - half, estimate + half]})
    for k, n, confidence in [(990, 1000, 0.975), (1, 5, 0.5), (200, 200, 0.95)]:
        case("exceedanceRateBound", [{"count": n, "rank": k}, confidence], stats.beta.ppf(confidence, n - k + 1, k))


def regression(rng):
    for effects, variances in [([0.1, 0.3, -0.05, 0.22], [0.01, 0.02, 0.015, 0.005]), ([1, 4, 2.5, 9, 3], [0.5, 0.4, 0.6, 0.3, 0.8]), ([2, 2.01, 1.99], [1, 1, 2])]:
        units = [{"effect": e, "variance": v} for e, v in zip(effects, variances)]
        r = combine_effects(np.array(effects), np.array(variances), method_re="dl", use_t=False)
        tau = max(0, r.tau2)
        w = 1 / (np.array(variances) + tau)
        mean, error = float(np.sum(w * effects) / w.sum()), float(math.sqrt(1 / w.sum()))
        z = stats.norm.ppf(0.975)
        case("cochranQ", [units], {"statistic": r.q, "degreesOfFreedom": len(effects) - 1,
             "pValue": stats.chi2.sf(r.q, len(effects) - 1), "inconsistency": max(0, r.i2)})
        assert tau == 0 or (abs(mean - r.mean_effect_re) < 1e-12 and abs(error - r.sd_eff_w_re) < 1e-12)
        case("randomEffects", [units, {"method": "normal"}], {"estimate": mean, "standardError": error, "betweenVariance": tau,
             "interval": [mean - z * error, mean + z * error], "pValue": 2 * stats.norm.sf(abs(mean / error))})
        scale = max(1.0, float(np.sum(w * (np.array(effects) - mean) ** 2) / (len(effects) - 1)))
        if tau > 0:
            assert abs(max(error, r.sd_eff_w_re_hksj) - error * math.sqrt(scale)) < 1e-12
        knapp = error * math.sqrt(scale)
        t = stats.t.ppf(0.975, len(effects) - 1)
        case("randomEffects", [units], {"standardError": knapp, "interval": [mean - t * knapp, mean + t * knapp],
             "pValue": 2 * stats.t.sf(abs(mean / knapp), len(effects) - 1)})
    n = 60
    groups = [f"c{i}" for i in rng.integers(0, 11, n)]
    x = np.round(np.column_stack([rng.normal(8000, 3000, n), rng.binomial(1, 0.4, n)]), 2)
    y = np.round(0.9 - 1e-5 * x[:, 0] - 0.05 * x[:, 1] + rng.normal(0, 0.05, n), 4)
    codes = np.unique(groups, return_inverse=True)[1]
    fit = sm.OLS(y, sm.add_constant(x)).fit(cov_type="cluster", cov_kwds={"groups": codes, "df_correction": True}, use_t=True)
    interval = fit.conf_int()
    case("clusterRobustRegression", [{"outcomes": y, "predictors": x, "names": ["length", "tool"], "clusters": groups}],
         {"numClusters": len(set(groups)), "determination": fit.rsquared, "coefficients": [
             {"name": name, "estimate": fit.params[i], "standardError": fit.bse[i], "interval": interval[i], "pValue": fit.pvalues[i]}
             for i, name in enumerate(["intercept", "length", "tool"])]})


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
    for p, q in [(0.9, 0.88), (0.6, 0.75), (0.01, 0.03)]:
        m = (p + q) / 2
        root = z(0.975) * math.sqrt(2 * m * (1 - m)) + z(0.8) * math.sqrt(p * (1 - p) + q * (1 - q))
        case("sampleSizeTwoProportions", [{"first": p, "second": q}], math.ceil((root / (p - q)) ** 2))
    for level, confidence in [(0.99, 0.975), (0.99, 0.95), (0.95, 0.975), (0.5, 0.9), (0.05, 0.975)]:
        far = max(level, 1 - level)
        case("requestsForQuantileBound", [level, confidence], next(n for n in range(1, 10000) if 1 - far**n >= confidence))


distributions()
proportions()
means_and_ranks(np.random.default_rng(7))
several_tests()
counts()
agreement(np.random.default_rng(11))
regression(np.random.default_rng(13))
sequential()
planning()
target = pathlib.Path(__file__).parents[2] / "packages/statistics/fixtures/reference.json"
header = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "mpmath": mpmath.__version__, "numpy": np.__version__}
lines = ",\n".join("    " + json.dumps(entry) for entry in cases)
target.write_text('{\n  "versions": ' + json.dumps(header) + ',\n  "cases": [\n' + lines + "\n  ]\n}\n")
print(len(cases), "cases")
