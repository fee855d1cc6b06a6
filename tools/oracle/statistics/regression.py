"""Effects of several studies, and regression with clusters."""

import math

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from cases import case


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
