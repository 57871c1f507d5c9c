"""Shared data."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported; scikit-learn skips a check without it

# pytest turns warnings into errors in this process; floating-point warnings are errors in the processes it starts, too
os.environ.setdefault("PYTHONWARNINGS", "error::RuntimeWarning")

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_breast_cancer, load_digits

# timings are noisy; and a change is judged by the same examples each time it is judged
settings.register_profile("steady", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("steady")


def pytest_runtest_setup(item):
    """Skip a test whose optional packages are missing."""
    for marker in item.iter_markers("needs"):
        for package in marker.args:
            pytest.importorskip(package)


def standardized(table):
    spread = table.std(axis=0)
    table = table[:, spread > 0]
    return np.ascontiguousarray(((table - table.mean(axis=0)) / table.std(axis=0)).T)


@pytest.fixture(scope="session")
def digits():
    """61 × 1797: the digits without their constant pixels, scaled to median length 1."""
    X = standardized(load_digits().data)
    return X / np.median(np.linalg.norm(X, axis=0))


@pytest.fixture(scope="session")
def breast_cancer():
    """30 × 569, standardized."""
    return standardized(load_breast_cancer().data)
