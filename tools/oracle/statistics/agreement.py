"""Several tests at once, counts, and labels that agree."""

import math

import numpy as np
from scipy import stats
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import average_precision_score, roc_auc_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests

from cases import case


def several_tests():
    for p in [[0.01, 0.04, 0.03, 0.005], [0.5, 0.02, 0.02, 0.9, 0.011, 1, 0.3], [0.2], [0.001, 0.0099, 0.0101, 0.04, 0.05, 0.06]]:
        case("holm", [p], multipletests(p, method="holm")[1])


def counts():
    for a, b in [([20, 30, 50], [25, 35, 40]), ([5, 0, 0, 9], [3, 0, 4, 2])]:
        case("jensenShannon", [a, b], jensenshannon(a, b, base=2))
        case("jensenShannon", [a, b, "e"], jensenshannon(a, b))


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
