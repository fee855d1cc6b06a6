"""Writes packages/optimize/fixtures/hdbscan.json: points and the labels that scikit-learn's HDBSCAN gives them.

No distances tie in these points, so that the labels do not depend on the order of merging.
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn.cluster import HDBSCAN

cases = []
for seed, (dimensions, blobs, noise, size, epsilon) in enumerate(
    [(2, 3, 10, 5, 0.0), (2, 4, 0, 3, 0.0), (3, 5, 12, 4, 0.0), (2, 6, 8, 2, 0.8), (8, 4, 6, 5, 1.5), (2, 2, 20, 10, 0.0), (4, 6, 20, 2, 2.0)]
):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(rng.uniform(-8, 8, dimensions), rng.uniform(0.2, 0.9), (int(rng.integers(8, 22)), dimensions)) for _ in range(blobs)]
    points = np.round(np.vstack([*parts, rng.uniform(-10, 10, (noise, dimensions))]), 5).astype(np.float32)
    labels = HDBSCAN(min_cluster_size=size, min_samples=1, cluster_selection_epsilon=epsilon, copy=True).fit(points.astype(np.float64)).labels_
    options = {"minClusterSize": size, "epsilon": epsilon}
    cases.append({"options": options, "dimensions": dimensions, "points": [round(float(x), 5) for x in points.ravel()], "labels": labels.tolist()})
    print(len(labels), sorted(set(labels.tolist())))
target = pathlib.Path(__file__).parents[2] / "packages/optimize/fixtures/hdbscan.json"
target.write_text(json.dumps({"scikit-learn": sklearn.__version__, "cases": cases}, separators=(",", ":")) + "\n")
