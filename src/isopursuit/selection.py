"""What `select` answers: which columns, how good, how sure, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit import views
from isopursuit._types import Array, Indices, Label, Labels
from isopursuit.errors import printable
from isopursuit.loss.penalty import to_loss
from isopursuit.results import Pursuit, Search, loss_text, plain
from isopursuit.scale import UnitLength


@dataclass(frozen=True)
class Choice:
    """One picked column: why it is in, and what would replace it.

    `price` is how much the loss rises if the column is replaced by its best substitute, whose label is `replacement`.
    Where no column can replace it, because the columns would be dependent with any other, the price is infinite and the
    replacement None; where there was no time to compute the price it is NaN. `log_loss` is the logarithm of the loss
    with the replacement: it is finite also where the price overflows float64. At many points `length` is the mean.
    """

    index: int
    label: Label
    length: float
    price: float
    replacement: Label | None
    log_loss: float = float("inf")

    def price_text(self, digits: int = 3) -> str:
        """The price for reading, as a power of e where it overflows float64."""
        if np.isnan(self.price):
            return "unknown"
        if self.replacement is None or np.isfinite(self.price):
            return f"{self.price:.{digits}g}"
        return f"e^{self.log_loss:.4g}" if self.price > 0 else "-inf"

    @property
    def replacement_text(self) -> str:
        """The replacement for reading."""
        if np.isnan(self.price):
            return "not computed"
        return "none" if self.replacement is None else str(self.replacement)


@dataclass(frozen=True)
class Alternative:
    """A column that lost narrowly: the least loss with it in, by one exchange, and the label it would displace."""

    index: int
    label: Label
    length: float
    loss: float
    displaces: Label
    log_loss: float = float("inf")


@dataclass(frozen=True)
class Selection:
    """The answer of `select`: which columns, how good, how sure, and why.

    Attributes
    ----------
    indices : ndarray of int
        The picked columns, ascending.
    labels : tuple
        Their labels, or their indices where there are none.
    loss : float
        Their loss l_c, summed over the points where there are many; the ideal is k for each.
    space : {"vectors", "leading"}
        Whether the columns were compared as they are, or in the leading k-dimensional row space.
    log_loss_of_vectors : float or None
        With space="leading" the logarithm of the loss of the columns as they are.
    unit : str
        The length that counts as 1, in words: "as given", "median length 3.21 = 1", "each column has length 1", ...
    pursuit : Pursuit or None
        The convex stage, for the two-stage method.
    search : Search
        The search that picked them, with its bound.
    matrix : ndarray, shape (D, k), or (n, D, k) for many points
        The picked columns as they were compared, in that unit: (k, k) with space="leading".
    choices : tuple of Choice
        For each picked column its length, its price and its best replacement.
    alternatives : tuple of Alternative
        The columns that lose narrowly, best first.
    excluded : tuple of int
        The columns that could not be picked. With space="leading" they take no part in that space.
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
    space: str = "vectors"
    log_loss_of_vectors: float | None = None

    @property
    def unit_length(self) -> UnitLength:
        """What lengths were divided by."""
        return self.search.unit_length

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
        return 1 if self.matrix.ndim == 2 else len(self.matrix)

    @property
    def ideal(self) -> int:
        """The loss of orthonormal columns: k at each point."""
        return self.k * self.points

    @property
    def gram(self) -> Array:
        """The inner products of the picked columns, (k, k): the mean over the points where there are many."""
        products = np.swapaxes(self.matrix, -1, -2) @ self.matrix
        return products if products.ndim == 2 else products.mean(axis=0)

    @property
    def verdict(self) -> str:
        """What is proved, in words."""
        if self.pursuit is None:
            return self.search.verdict
        also = "" if np.isin(self.indices, self.pursuit.tied).all() else " and those included"
        return f"{self.search.verdict} among the {len(self.pursuit.tied)} candidates the pursuit left{also}"

    @property
    def _space(self) -> str:
        """What the loss is of, where it is not that of the columns as they are."""
        if self.log_loss_of_vectors is None:
            return ""
        vectors = to_loss(self.log_loss_of_vectors)
        beside = f"{vectors:.6g}" if np.isfinite(vectors) else f"e^{self.log_loss_of_vectors:.4g}"
        return f" in the leading {self.k} dimensions ({beside} of the vectors)"

    def take(self, X: Any) -> Any:
        """The picked columns of X itself, a pandas or polars frame or an array."""
        if hasattr(X, "columns"):
            return X[[X.columns[i] for i in self.indices.tolist()]]
        return np.asarray(X)[..., self.indices]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the search's answer, each column's price, the alternatives, the pursuit's certificate."""
        return {
            **self.search.as_dict(),
            "method": self.method,
            "c": self.c,
            "k": self.k,
            "space": self.space,
            "log_loss_of_vectors": plain(self.log_loss_of_vectors),
            "verdict": self.verdict,
            "choices": [{name: plain(value) for name, value in vars(choice).items()} for choice in self.choices],
            "alternatives": [{name: plain(value) for name, value in vars(one).items()} for one in self.alternatives],
            "pursuit": None if self.pursuit is None else self.pursuit.as_dict(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        loss = loss_text(self, 6)
        over = f" over {self.points} points" if self.points > 1 else ""
        lines = [
            f"{self.k} columns by {self.method}: loss {loss}{self._space}{over} (ideal {self.ideal}), {self.verdict}"
        ]
        if self.pursuit is not None:
            lines.append(f"  pursuit: {self.pursuit.certificate}")
        lines.append(f"  unit: {self.unit}")
        names = [printable(choice.label) for choice in self.choices]
        width = max(6, *map(len, names))
        lines.append(f"  {'column':<{width}}  length    price  best replacement")
        for name, choice in zip(names, self.choices, strict=True):
            price, other = choice.price_text(), printable(choice.replacement_text)
            lines.append(f"  {name:<{width}}  {choice.length:6.3f}  {price:>7}  {other}")
        if self.alternatives:
            near = ", ".join(f"{printable(other.label)} ({loss_text(other)})" for other in self.alternatives[:3])
            lines.append(f"  close losers: {near}")
        return "\n".join(lines + [f"  note: {printable(note)}" for note in self.notes])

    def _repr_html_(self) -> str:
        loss = loss_text(self, 6)
        rows = [
            (one.label, f"{one.length:.3f}", views.number(one.price, 3), one.replacement_text) for one in self.choices
        ]
        return views.result(
            f"{self.k} columns by {self.method}, loss {loss}{self._space} (ideal {self.ideal})",
            f"{self.verdict}; unit: {self.unit}",
            views.table(("column", "length", "price", "best replacement"), rows),
            views.gram_table(self.gram, self.labels),
            notes=self.notes,
        )
