"""The answers: frozen objects of a fixed shape that carry their proof and show themselves as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isopursuit import views
from isopursuit.matrix import Label

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
FEASIBLE = 1e-6  # a relative residual above this is no solution at all
PROVED = 1e-9  # a relative gap that a reader need not be told of


def name_of(labels: tuple[Label, ...] | None, index: int) -> Label:
    """A column's label, or its number where there are none."""
    return index if labels is None else labels[index]


def _plain(value: Any) -> Any:
    """What JSON can hold: finite numbers, text, None."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return value if value is None or isinstance(value, bool | str) else str(value)


@dataclass(frozen=True)
class Certificate:
    """dual ≤ optimum ≤ primal: the proof that an answer is (nearly) best.

    Attributes
    ----------
    primal : float
        The objective of coefficients that satisfy the constraint.
    dual : float
        The value of a feasible dual point: no coefficients can do better than this.
    residual : float
        ‖X B − Y‖ / ‖Y‖, how exactly the coefficients satisfy the constraint (0 with a ridge, which has none).
    """

    primal: float
    dual: float
    residual: float = 0.0

    @property
    def gap(self) -> float:
        """(primal − dual) / primal; infinite where the constraint is not met, for then nothing is proved."""
        if not (self.residual <= FEASIBLE and np.isfinite(self.primal)):
            return float("inf")
        return max(self.primal - self.dual, 0.0) / self.primal if self.primal > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is not finite becomes None."""
        return {name: _plain(getattr(self, name)) for name in ("primal", "dual", "gap", "residual")}

    def __str__(self) -> str:
        return f"{self.dual:.10g} ≤ optimum ≤ {self.primal:.10g} (gap {self.gap:.1e})"


@dataclass(frozen=True)
class Effort:
    """What a pursuit over a source took: passes over all its columns, bytes read by them, seconds of each."""

    passes: int
    bytes: int
    seconds: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"passes": self.passes, "bytes": self.bytes, "seconds": list(self.seconds)}

    def __str__(self) -> str:
        return f"{self.passes} passes over all columns, {self.bytes / 1e9:.3g} GB read in {sum(self.seconds):.3g} s"


@dataclass(frozen=True)
class Pursuit:
    """The solution of multitask basis pursuit (or lasso), with its certificate.

    Attributes
    ----------
    weights : ndarray, shape (P,)
        w_p = ‖β_p‖ at the optimum; exactly zero off the support.
    support : ndarray of int
        The columns with weight, ascending.
    tied : ndarray of int
        Every column that some optimal solution may use: the others are proved to be in none of them.
    unique : bool
        Whether the optimal coefficients are the only ones.
    solution : str
        Which of the optimal solutions this is where they are many: "minimum-norm", "vertex" or "interior".
    certificate : Certificate
        Primal, dual and gap.
    dual : ndarray, shape (D, r) or (n, D, r)
        ν with ‖νᵀ x_p‖ ≤ 1 for every column.
    status : {"optimal", "stalled", "stopped"}
        "optimal": the gap asked for was reached. "stalled": rounding does not allow it. "stopped": by the callback or a
        time limit.
    effort : Effort or None
        For a source: how many passes it took.
    """

    weights: Array
    tied: Indices
    unique: bool
    solution: Literal["minimum-norm", "vertex", "interior"]
    certificate: Certificate
    dual: Array
    ridge: float
    status: Literal["optimal", "stalled", "stopped"]
    labels: tuple[Label, ...] | None = None
    notes: tuple[str, ...] = ()
    support_coefficients: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    effort: Effort | None = None

    @cached_property
    def support(self) -> Indices:
        """The columns with weight, ascending."""
        return np.flatnonzero(self.weights)

    @property
    def coefficients(self) -> Array:
        """B, shape (P, r), or (n, P, r) for many points; zero off the support."""
        some = self.support_coefficients
        full = np.zeros((*some.shape[:-2], len(self.weights), some.shape[-1]))
        full[..., self.support, :] = some
        return full

    @property
    def objective(self) -> float:
        """The certified objective value (the primal one)."""
        return self.certificate.primal

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the columns with weight, the tied ones, the certificate."""
        return {
            "columns": [
                {"index": int(i), "label": _plain(name_of(self.labels, int(i))), "weight": float(self.weights[i])}
                for i in self.support
            ],
            "tied": self.tied.tolist(),
            "unique": self.unique,
            "solution": self.solution,
            "status": self.status,
            "ridge": self.ridge,
            "certificate": self.certificate.as_dict(),
            "effort": None if self.effort is None else self.effort.as_dict(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        kind = "the only solution" if self.unique else f"one of many solutions ({self.solution})"
        lines = [
            f"Pursuit: {len(self.support)} of {len(self.weights)} columns, {kind}",
            f"  {self.certificate}",
            f"  tied set: {len(self.tied)} columns; no other column is in any optimal solution",
            *([] if self.effort is None else [f"  {self.effort}"]),
        ]
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        gap = self.certificate.gap
        verdict = "proved optimal" if gap <= PROVED else f"proved within {views.percent(gap)} of the optimum"
        if not np.isfinite(gap):
            verdict = "nothing is proved: the constraint is not met"
        rows = [
            ("optimum", f"{self.certificate.dual:.10g} to {self.certificate.primal:.10g}"),
            ("solution", "the only one" if self.unique else f"one of many ({self.solution})"),
            ("tied set", f"{len(self.tied)} columns; no other column is in any optimal solution"),
        ]
        heaviest = self.support[np.argsort(-self.weights[self.support], kind="stable")]
        weights = [(i if self.labels is None else self.labels[i], f"{self.weights[i]:.4g}") for i in heaviest.tolist()]
        title = f"Pursuit: {len(self.support)} of {len(self.weights)} columns"
        return views.result(
            title,
            verdict,
            views.table((), rows),
            views.table(("column", "weight"), weights, shown=10),
            notes=self.notes,
        )


@dataclass(frozen=True)
class Search:
    """A subset of columns, its loss, and how far from the best it can be.

    Attributes
    ----------
    indices : ndarray of int
        The picked columns, ascending.
    loss : float
        The objective of the picked columns.
    log_loss : float
        Its logarithm, finite where the loss itself is beyond float64 (NaN for objectives that may be negative).
    lower_bound : float
        No subset has a lower loss than this.
    evaluations : int
        How many subsets were evaluated.
    status : {"optimal", "gap", "time", "nodes", "memory", "interrupted", "heuristic"}
        "optimal": proved. "gap": proved within the gap asked for. Else the bound tells how far, and the status why:
        "memory" that of a source's columns too many could not be excluded.
        "heuristic": a method that proves nothing; the bound is the trivial one.
    nodes : int
        Nodes of the search tree (exact search).
    seconds : float
        Wall-clock time.
    """

    indices: Indices
    loss: float
    log_loss: float
    lower_bound: float
    evaluations: int
    status: Literal["optimal", "gap", "time", "nodes", "memory", "interrupted", "heuristic"]
    method: str
    objective: str = "isometry"
    nodes: int = 0
    seconds: float = 0.0
    labels: tuple[Label, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def optimal(self) -> bool:
        """Whether the subset is proved to be a best one."""
        return self.status == "optimal"

    @property
    def gap(self) -> float:
        """(loss − lower_bound) / loss, zero when proved optimal; infinite where no bound is known."""
        if self.optimal or self.loss == self.lower_bound:
            return 0.0
        if not (np.isfinite(self.loss) and np.isfinite(self.lower_bound)):
            return float("inf")
        return (self.loss - self.lower_bound) / abs(self.loss)

    @property
    def verdict(self) -> str:
        """The proof in words."""
        if self.optimal:
            return "proved optimal"
        if self.status == "heuristic":
            return "no proof"
        if not np.isfinite(self.gap):
            return f"no bound yet ({self.status})"
        return f"within {100 * self.gap:.2g} % of optimal ({self.status})"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is not finite becomes None."""
        names = ("loss", "log_loss", "lower_bound", "gap", "status", "verdict", "method", "objective", "nodes")
        return {
            "indices": self.indices.tolist(),
            "labels": [_plain(name_of(self.labels, i)) for i in self.indices.tolist()],
            **{name: _plain(getattr(self, name)) for name in (*names, "evaluations", "seconds")},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        loss = loss_text(self, 9)
        names = self.indices.tolist() if self.labels is None else [self.labels[i] for i in self.indices]
        text = f"{self.method} search: {self.objective} loss {loss}, {self.verdict}\n  columns {names}"
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        loss = loss_text(self, 9)
        names = self.indices.tolist() if self.labels is None else [self.labels[i] for i in self.indices]
        rows = [
            (f"{self.objective} loss", loss),
            ("no subset is below", f"{self.lower_bound:.9g}" if np.isfinite(self.lower_bound) else "unknown"),
            ("effort", f"{self.nodes:,} nodes, {self.evaluations:,} subsets evaluated, {self.seconds:.2g} s"),
            ("columns", ", ".join(str(name) for name in names)),
        ]
        title = f"{len(self.indices)} columns by {self.method} search"
        return views.result(title, self.verdict, views.table((), rows), notes=self.notes)


@dataclass(frozen=True)
class Choice:
    """One picked column: why it is in, and what would replace it.

    `price` is how much the loss rises without it, when its best replacement (given by its label) takes its place;
    infinite, and None, if no single column can. At many points `length` is the mean.
    """

    index: int
    label: Label
    length: float
    price: float
    replacement: Label | None


@dataclass(frozen=True)
class Alternative:
    """A column that lost narrowly: the least loss with it in, by one exchange, and the label it would displace."""

    index: int
    label: Label
    length: float
    loss: float
    displaces: Label


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
    pursuit : Pursuit or None
        The convex stage, for the two-stage method.
    search : Search
        The search that picked them, with its bound.
    matrix : ndarray, shape (k, k), or (n, k, k) for many points
        The picked columns as they were compared (in the row space where k < D).
    choices : tuple of Choice
        For each picked column its length, its price and its best replacement.
    alternatives : tuple of Alternative
        The columns that lose narrowly, best first.
    """

    indices: Indices
    labels: tuple[Label, ...]
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
            "verdict": self.verdict,
            "choices": [{name: _plain(value) for name, value in vars(choice).items()} for choice in self.choices],
            "alternatives": [{name: _plain(value) for name, value in vars(one).items()} for one in self.alternatives],
            "pursuit": None if self.pursuit is None else self.pursuit.as_dict(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        loss = loss_text(self, 6)
        over = f" over {self.points} points" if self.points > 1 else ""
        lines = [f"{self.k} columns by {self.method}: loss {loss}{over} (ideal {self.ideal}), {self.verdict}"]
        if self.pursuit is not None:
            lines.append(f"  pursuit: {self.pursuit.certificate}")
        width = max(6, *(len(str(choice.label)) for choice in self.choices))
        lines.append(f"  {'column':<{width}}  length    price  best replacement")
        for choice in self.choices:
            other = "none" if choice.replacement is None else str(choice.replacement)
            lines.append(f"  {choice.label!s:<{width}}  {choice.length:6.3f}  {choice.price:7.3g}  {other}")
        if self.alternatives:
            near = ", ".join(f"{other.label} ({other.loss:.6g})" for other in self.alternatives[:3])
            lines.append(f"  close losers: {near}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        loss = loss_text(self, 6)
        rows = [
            (
                one.label,
                f"{one.length:.3f}",
                views.number(one.price, 3),
                "none" if one.replacement is None else one.replacement,
            )
            for one in self.choices
        ]
        return views.result(
            f"{self.k} columns by {self.method}, loss {loss} (ideal {self.ideal})",
            self.verdict,
            views.table(("column", "length", "price", "best replacement"), rows),
            views.gram_table(self.gram, self.labels),
            notes=self.notes,
        )


def loss_text(answer: Search | Selection, digits: int = 6) -> str:
    """The loss, or its logarithm as an exponent where the loss itself is beyond float64."""
    return f"{answer.loss:.{digits}g}" if np.isfinite(answer.loss) else f"e^{answer.log_loss:.6g}"
