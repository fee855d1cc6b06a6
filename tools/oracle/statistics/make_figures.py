"""Writes packages/statistics/fixtures/reference.json: calls of the statistics package and what they must return.

Figures come from SciPy and statsmodels where these have the method; otherwise from its definition, by brute force
(all permutations, maximised likelihoods, numeric integration), never by the formula that the package uses.
"""

import json
import pathlib

import mpmath
import numpy as np
import scipy
import statsmodels

from agreement import agreement, counts, receiver_operating_characteristic, several_tests
from cases import cases
from distributions import distributions
from proportions import proportions
from regression import regression
from samples import means_and_ranks
from planning import planning

distributions()
proportions()
means_and_ranks(np.random.default_rng(7))
several_tests()
counts()
agreement(np.random.default_rng(11))
receiver_operating_characteristic()
regression(np.random.default_rng(13))
planning()
target = pathlib.Path(__file__).parents[3] / "packages/statistics/fixtures/reference.json"
header = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "mpmath": mpmath.__version__, "numpy": np.__version__}
lines = ",\n".join("    " + json.dumps(entry) for entry in cases)
target.write_text('{\n  "versions": ' + json.dumps(header) + ',\n  "cases": [\n' + lines + "\n  ]\n}\n")
print(len(cases), "cases")
