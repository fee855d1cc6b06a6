"""Several tests at once, counts, and labels that agree."""

import math

import numpy as np
from scipy import stats
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import average_precision_score, roc_auc_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from cases import case


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


def placements(scores, labels):
    """AUC and its variance by DeLong's definition: every pair of cases compared."""
    positive = [s for s, l in zip(scores, labels) if l]
    negative = [s for s, l in zip(scores, labels) if not l]
    wins = np.array([[1.0 if p > n else 0.5 if p == n else 0.0 for n in negative] for p in positive])
    rows, columns = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), np.var(rows, ddof=1) / len(positive) + np.var(columns, ddof=1) / len(negative)


def receiver_operating_characteristic():
    rng = np.random.default_rng(17)
    for count, steps in [(12, 0), (60, 0), (60, 5), (200, 3)]:
        labels = (rng.uniform(size=count) < 0.4).tolist()
        scores = [float(rng.normal() + 0.8 * label) for label in labels]
        scores = [round(s * steps) / steps for s in scores] if steps else scores
        auc, spread = placements(scores, labels)
        assert abs(auc - roc_auc_score(labels, scores)) < 1e-12
        logit, half = math.log(auc / (1 - auc)), stats.norm.ppf(0.95) * math.sqrt(spread) / (auc * (1 - auc))
        interval = [1 / (1 + math.exp(-(logit - half))), 1 / (1 + math.exp(-(logit + half)))]
        case("rocCurve", [scores, labels, 0.9],
             {"auc": auc, "interval": interval, "averagePrecision": average_precision_score(labels, scores)})


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
