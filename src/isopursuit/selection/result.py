"""The answer of `select`: the columns, their loss, what is proved about it, and the price of each column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from isopursuit._core.linalg import spectrum
from isopursuit._core.summary import Shown, Summary
from isopursuit._core.text import LogLoss, loss_text, plain, power_text
from isopursuit._core.types import Array, Indices, Label, Labels
from isopursuit.data._matrix import frame_names
from isopursuit.errors import printable
from isopursuit.loss.aggregate import Aggregate
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.results import IMPROVES, Pursuit, Search

LISTED = 3  # alternatives of each kind in the text of a selection


@dataclass(frozen=True)
class Choice:
    """One picked column: its length, its price, and its best replacement.

    `price` is how much the loss rises if the column is replaced by its best substitute, whose label is `replacement`.
    If no column can replace it, because rules allow no other or any other would make the columns dependent, the price
    is infinite and the replacement is None. If there was no time to compute the price, it is NaN. `log_loss` is the
    logarithm of the loss with the replacement; it is finite even if the price overflows float64. At many points
    `length` is the mean length.
    """

    index: int
    label: Label
    length: float
    price: float
    replacement: Label | None
    log_loss: float = float("inf")

    def price_text(self, digits: int = 3) -> str:
        """The price as text; a large one is written as a power of e, as in `loss_text`."""
        if np.isnan(self.price):
            return "unknown"
        if np.isfinite(self.price):
            return f"-{loss_text(-self.price, digits)}" if self.price < 0 else loss_text(self.price, digits)
        if self.replacement is None:
            return "inf"
        # beyond float64 a difference of losses is the larger of the two
        return power_text(self.log_loss) if self.price > 0 else "-inf"

    @property
    def replacement_text(self) -> str:
        """The replacement as text."""
        if np.isnan(self.price):
            return "not computed"
        return "none" if self.replacement is None else str(self.replacement)


@dataclass(frozen=True)
class Alternative:
    """A column that was not picked: the lowest loss after swapping it in, and the label of the column it displaces.

    `loss` is above the selection's loss for a close loser, and below it for an improving swap.
    """

    index: int
    label: Label
    length: float
    loss: float
    displaces: Label
    log_loss: float = float("inf")


@dataclass(frozen=True)
class Selection(Shown):
    """The answer of `select`: the picked columns, their loss, what is proved about it, and the price of each column.

    Attributes
    ----------
    indices : ndarray of int
        The picked columns, ascending.
    labels : tuple
        Their labels, or their indices if there are no labels.
    loss : float
        Their loss l_c. At many points it is the aggregate of the points' losses: their sum (the ideal is k for each
        point), or their trimmed mean (the ideal is k). `loss_per_point` has the same scale for both.
    unit : str
        The length that counts as 1, in words: "as given", "median length 3.21 = 1", "each column has length 1", ...
    pursuit : Pursuit or None
        The convex stage, for the two-stage method.
    search : Search
        The search that picked them, with its bound. For the two-stage method its status, gap and bound hold among the
        tied columns only.
    matrix : ndarray, shape (D, k), or (n, D, k) for many points
        The picked columns as they were compared, in that unit.
    choices : tuple of Choice
        The length, price and best replacement of each picked column.
    alternatives : tuple of Alternative
        Columns that a single swap would bring in, lowest loss first: `improving_swaps`, then `close_losers`.
    reason : str
        Why method="auto" chose `method`; empty for other methods.
    excluded : tuple of int
        The excluded columns.
    call : str
        The call that gave this answer, as Python code. X and labels stand for your data.
    """

    indices: Indices
    labels: Labels
    loss: float
    log_loss: float
    pursuit: Pursuit | None
    search: Search
    matrix: Array
    choices: tuple[Choice, ...]
    alternatives: tuple[Alternative, ...]
    method: str
    c: float
    notes: tuple[str, ...] = ()
    excluded: tuple[int, ...] = ()
    reason: str = ""
    call: str = ""

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        return self.search.unit

    @property
    def k(self) -> int:
        """How many columns were picked."""
        return len(self.indices)

    @property
    def points(self) -> int:
        """At how many points the columns were compared: 1 for one matrix."""
        return self.search.points

    @property
    def aggregate(self) -> Aggregate:
        """How the losses at many points were combined."""
        return self.search.aggregate

    @property
    def ideal(self) -> int:
        """The loss of orthonormal columns: k, times the number of points if losses are summed."""
        return round(self.aggregate.ideal(self.k, self.points))

    @property
    def loss_per_point(self) -> float:
        """The loss of a typical point, whose ideal is k: the mean of the losses if `loss` is their sum."""
        return self.search.per_point.loss

    @cached_property
    def order(self) -> Indices:
        """The picked columns, most useful first: the best single one, then always the one that gives the least loss.

        A list that is cut short then keeps the columns that matter most. Ties go to the lowest number.
        """
        points = self.matrix.reshape(self.points, -1, self.k)
        R: Array = np.asarray(np.linalg.qr(points, mode="r"))  # an orthogonal change of the rows keeps all losses
        first: list[int] = []
        rest = list(range(self.k))
        while rest:
            stack: Array = np.stack([R[:, :, [*first, i]] for i in rest])
            losses = self.aggregate.log_total(log_spectral_loss(spectrum(stack), self.c))
            first.append(rest.pop(int(np.argmax(losses <= losses.min() + IMPROVES))))
        return self.indices[first]

    @property
    def gram(self) -> Array:
        """The inner products of the picked columns, (k, k); at many points, their mean."""
        products = np.swapaxes(self.matrix, -1, -2) @ self.matrix
        return products if products.ndim == 2 else products.mean(axis=0)

    @property
    def improving_swaps(self) -> tuple[Alternative, ...]:
        """The alternatives whose loss is below that of the picked columns, lowest first.

        Swapping any one of them for the column that it displaces improves the answer. There are none if the answer is
        proved optimal among all columns.
        """
        return tuple(one for one in self.alternatives if one.log_loss < self.log_loss - IMPROVES)

    @property
    def close_losers(self) -> tuple[Alternative, ...]:
        """The alternatives that do not improve on the picked columns, lowest loss first."""
        return self.alternatives[len(self.improving_swaps) :]

    @property
    def swap_lines(self) -> list[str]:
        """The best alternatives as text: improving swaps on one line, close losers on another."""
        better = [f"{one.label} for {one.displaces} ({loss_text(one)})" for one in self.improving_swaps[:LISTED]]
        near = [f"{one.label} ({loss_text(one)})" for one in self.close_losers[:LISTED]]
        return [
            f"{name}: {', '.join(map(printable, some))}"
            for name, some in (("improving swaps", better), ("close losers", near))
            if some
        ]

    @property
    def verdict(self) -> str:
        """What is proved, in words."""
        if self.pursuit is None:
            return self.search.verdict
        also = "" if np.isin(self.indices, self.pursuit.tied).all() else " and those included"
        return f"{self.search.verdict} among the {len(self.pursuit.tied)} candidates the pursuit left{also}"

    def take(self, X: Any) -> Any:
        """The picked columns of X, which is a pandas, Polars or Arrow frame or an array."""
        names = frame_names(X)
        if names is not None:
            return (X.select if hasattr(X, "select") else X.__getitem__)([names[i] for i in self.indices.tolist()])
        return np.asarray(X)[..., self.indices]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the answer of the search, the price of each column, alternatives, the pursuit's certificate."""
        return {
            **self.search.as_dict(),
            "method": self.method,
            "asked": "auto" if self.reason else self.method,
            "reason": self.reason or None,
            "c": self.c,
            "k": self.k,
            "verdict": self.verdict,
            "choices": [{name: plain(value) for name, value in vars(choice).items()} for choice in self.choices],
            "alternatives": [{name: plain(value) for name, value in vars(one).items()} for one in self.alternatives],
            "pursuit": None if self.pursuit is None else self.pursuit.as_dict(),
            "notes": list(self.notes),
        }

    def per_point(self) -> Selection:
        """The same selection with loss, bound, prices and alternatives as means over the points instead of sums."""
        shift = self.search.per_point.log_loss - self.log_loss
        if not shift < 0:
            return self
        scale, mean = float(np.exp(shift)), Aggregate("trimmed", 1.0)
        whole = replace(
            self.search,
            loss=self.search.loss * scale,
            log_loss=self.search.log_loss + shift,
            lower_bound=self.search.lower_bound * scale,
            aggregate=mean,
        )
        choices = tuple(replace(one, price=one.price * scale, log_loss=one.log_loss + shift) for one in self.choices)
        others = tuple(replace(one, loss=one.loss * scale, log_loss=one.log_loss + shift) for one in self.alternatives)
        loss, log_loss = self.loss * scale, self.log_loss + shift
        return replace(self, loss=loss, log_loss=log_loss, search=whole, choices=choices, alternatives=others)

    def overview(self) -> Summary:
        """What is shown of the answer."""
        shown = self.per_point()
        lines = [] if self.pursuit is None else [f"pursuit: {self.pursuit.certificate}"]
        losses = np.zeros(0) if self.search.point_log_losses is None else self.search.point_log_losses
        highest: list[int] = np.argsort(-losses, kind="stable")[:LISTED].tolist()
        worst = ", ".join(f"{i} ({loss_text(LogLoss(float(losses[i])), 4)})" for i in highest)
        return Summary(
            title=f"{self.k} columns by {self.method}: loss {self.search.loss_words}",
            verdict=self.verdict,
            lines=[*lines, f"unit: {self.unit}", *self.search.rule_lines],
            head=("column", ">length", ">price", "best replacement"),
            rows=[(one.label, f"{one.length:.3f}", one.price_text(), one.replacement_text) for one in shown.choices],
            more=[*shown.swap_lines, *([f"highest losses: at point {worst}"] if worst else [])],
            notes=self.notes,
        )
