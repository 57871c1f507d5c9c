"""f and its bounds at some weights, and the certificate of coefficients and a dual point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices
from isopursuit.pursuit.settings import TIED_ROUNDING, TIGHT
from isopursuit.results import Certificate, relative_gap


@dataclass(frozen=True)
class Certified:
    """Coefficients on the support (n, |S|, r) and their norms, a dual point (n, D, r), and what they prove.

    The primal value includes the cost of removing the residual. `error` is the relative difference of both values, even
    if the dual value is above the primal one by rounding.
    """

    support: Indices
    B: Array
    norms: Array
    nu: Array
    certificate: Certificate
    error: float

    @classmethod
    def of(cls, support: Indices, B: Array, norms: Array, nu: Array, certificate: Certificate) -> Certified:
        """Make one, with the error of the certificate."""
        primal, dual = certificate.primal, certificate.dual
        above = (dual - primal) / primal if primal > 0 else 0.0
        return cls(support, B, norms, nu, certificate, max(certificate.gap, above))


@dataclass(frozen=True)
class Evaluation:
    """f at some weights: M⁻¹, q and leverage xᵀM⁻¹x of every column, and bounds dual ≤ min f ≤ primal."""

    weights: Array
    inverse: Array
    q: Array
    leverage: Array
    primal: float
    dual: float
    value: float

    @property
    def gap(self) -> float:
        """Relative to the primal value."""
        return relative_gap(self.primal, self.dual)

    @property
    def minimized(self) -> bool:
        """Whether f itself is near its minimum, so that the weights, not only the coefficients, are near optimal."""
        return self.value - self.dual <= 1e-6 * self.value or self.gap > 1e-6

    def take(self, columns: Indices) -> Evaluation:
        """The evaluation on some of the columns, which include those with weight; bounds are still over all columns."""
        return replace(self, weights=self.weights[columns], q=self.q[columns], leverage=self.leverage[columns])

    @cached_property
    def tied(self) -> Indices:
        """The columns that no proof excludes from the support of an optimal solution.

        With ν = M⁻¹Y here and ν* at an optimum, tr (ν* − ν)ᵀM(ν* − ν) ≤ f(w) − dual (expand, and use
        ‖ν*ᵀx_p‖ ≤ 1). By Cauchy–Schwarz √q*_p ≤ √q_p + √((f − dual) · x_pᵀM⁻¹x_p). A column with weight has q*_p = 1.
        """
        slack = max(self.value - self.dual, 4 * EPS * self.value)
        return np.flatnonzero(np.sqrt(self.q) + np.sqrt(slack * np.maximum(self.leverage, 0.0)) >= 1.0 - TIED_ROUNDING)

    @property
    def tight(self) -> Indices:
        """The tied columns with weight, or with q_p = 1 up to slightly more than rounding."""
        tied = self.tied
        return tied[(self.q[tied] >= 1 - max(TIGHT, 10 * self.gap)) | (self.weights[tied] > 0)]
