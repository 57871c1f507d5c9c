"""Selectors for scikit-learn (extra `sklearn`): pick features, or samples, inside a pipeline.

Both turn a table (n_samples, n_features) into candidates, pass them to `select`, and keep its answer with the proof.
They differ in what a candidate is: a feature, or a sample.
"""

from isopursuit.errors import optional

optional("sklearn", "sklearn", "isopursuit.estimators")
from isopursuit.estimators.selectors import IsometryFeatureSelector, IsometrySampleSelector  # noqa: E402

__all__ = ["IsometryFeatureSelector", "IsometrySampleSelector"]
