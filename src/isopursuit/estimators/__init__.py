"""Selectors for scikit-learn (extra `sklearn`): pick features, or samples, inside a pipeline; sensors for PySensors.

The first two turn a table (n_samples, n_features) into candidates, pass them to `select`, and keep its answer with
the proof. They differ in what a candidate is: a feature, or a sample. The third ranks the rows of a basis matrix.
"""

from isopursuit.errors import optional

optional("sklearn", "sklearn", "isopursuit.estimators")
from isopursuit.estimators._features import IsometryFeatureSelector  # noqa: E402
from isopursuit.estimators._samples import IsometrySampleSelector  # noqa: E402
from isopursuit.estimators._sensors import IsometrySensorSelector  # noqa: E402

__all__ = ["IsometryFeatureSelector", "IsometrySampleSelector", "IsometrySensorSelector"]
