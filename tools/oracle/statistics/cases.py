"""Calls of the statistics package and what they must return, as they are added."""

import mpmath
import numpy as np

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
