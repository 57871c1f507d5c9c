"""`select` explains itself: prices, replacements, alternatives and notes against a full table of swaps; the estimators
against the same rows repeated, and against `select`.

The table is plain brute force. A log-loss is an interval, because float64 gives singular values to within
eps × the largest; whether columns are dependent is decided with fractions, which hold every float exactly.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

import isopursuit as ip
from fuzz.harness import Outcome, script
from isopursuit.errors import InputError, RangeError
from isopursuit.estimators import IsometryFeatureSelector, IsometrySampleSelector

EPS = np.finfo(np.float64).eps
DOUBTFUL = 1e-13  # of unit columns: independent ones with a smaller singular value are left to the library's judgement
UNBOUNDED = 590.0  # log-losses for which proofs need not exist


def run(seed: int) -> Outcome:
    """One problem: three of four for `select`, the fourth for an estimator."""
    rng = np.random.default_rng([seed, 12])
    return estimator_problem(rng) if seed % 4 == 3 else select_problem(rng)


# ------------------------------------------------------------------------------------------------------------ select


def select_problem(rng: np.random.Generator) -> Outcome:
    family, X = candidates(rng)
    n, D, P = X.shape
    c = float(rng.choice([0.3, 1.0, 2.0]))
    method = str(rng.choice(["two-stage", "two-stage", "exact", "exchange", "greedy", "brute"]))
    options: dict[str, Any] = {"method": method, "c": c}
    if rng.random() < 0.3:
        options["include"] = sorted(rng.choice(P, int(rng.integers(1, D + 1)), replace=False).tolist())
    if rng.random() < 0.3:
        free = np.setdiff1d(np.arange(P), options.get("include", []))
        options["exclude"] = sorted(rng.choice(free, min(int(rng.integers(1, 3)), len(free)), replace=False).tolist())
    if D > 1 and rng.random() < 0.2 and n * P > D and len(options.get("include", [])) < D:
        options["k"] = D - 1
    source = n == 1 and method != "brute" and rng.random() < 0.4
    family = f"{'source, ' if source else ''}{family}"
    given = X[0] if n == 1 else X
    text = script(f"picked = ip.select({'ip.as_source(X)' if source else 'X'}, **options)", X=given, options=options)
    oracle = Table(X, c, options)
    try:
        picked = ip.select(ip.as_source(given) if source else given, **options)
    except InputError as error:
        return Outcome(family, "refused", tuple(wrong_refusal(oracle, method, source, error)), text)
    return Outcome(family, picked.search.status, tuple(oracle.mistakes(picked, source)), text)


def candidates(rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """A family's name and X (n, D, P)."""
    n = int(rng.choice([1, 1, 1, 2, 3]))
    D = int(rng.integers(1, 5))
    P = int(rng.integers(D, 10 if D > 3 or rng.random() < 0.8 else 25))
    family = str(rng.choice(["lattice", "signs", "normal", "lengths", "one way", "near-duplicates", "tenths", "zeros"]))
    X = rng.integers(-2, 3, (n, D, P)).astype(float)
    if family == "signs":
        X = rng.choice([-1.0, 1.0], (n, D, P)) / np.sqrt(D)
    elif family == "normal":
        X = rng.normal(size=(n, D, P)) / np.sqrt(D)
    elif family == "lengths":
        X = rng.normal(size=(n, D, P)) * np.exp(rng.uniform(-4, 4, P))
    elif family == "one way":  # only a few columns leave a hyperplane: they have few replacements, or none
        X[:, -1] = 0.0
        X[:, -1, rng.integers(0, P, int(rng.integers(1, 3)))] = 1.0
    elif family == "tenths":
        X *= 0.1
    elif family == "zeros":
        X[rng.integers(0, n, P), :, np.arange(P)] *= (rng.random(P) < 0.5)[:, None]
    if family == "near-duplicates" or rng.random() < 0.3:
        for _ in range(int(rng.integers(1, 4))):
            a, b = rng.integers(0, P, 2)
            sign = rng.choice([-1.0, 1.0], (n, 1))
            X[:, :, b] = sign * X[:, :, a] * rng.choice([1.0, 1.0, 3.0, 0.1])
            if family == "near-duplicates":
                X[:, :, b] += 10.0 ** -rng.uniform(6, 10) * rng.normal(size=(n, D))
    return f"{family}, {n} points" if n > 1 else family, X


def dependent(columns: np.ndarray) -> bool:
    """Whether columns of floats, no more than rows, are dependent, exactly (Gaussian elimination in fractions)."""
    rows = [[Fraction(float(entry)) for entry in row] for row in columns]
    for j in range(columns.shape[1]):
        pivot = next((i for i in range(j, len(rows)) if rows[i][j] != 0), None)
        if pivot is None:
            return True
        rows[j], rows[pivot] = rows[pivot], rows[j]
        for i in range(j + 1, len(rows)):
            ratio = rows[i][j] / rows[j][j]
            rows[i] = [a - ratio * b for a, b in zip(rows[i], rows[j], strict=True)]
    return False


class Table:
    """Every subset's log-loss, as an interval (low, high): (inf, inf) where it is dependent for sure, and (low, inf)
    where float64 cannot tell.
    """

    def __init__(self, X: np.ndarray, c: float, options: dict[str, Any]) -> None:
        self.X, self.c = X, c
        self.include, self.exclude = options.get("include", []), options.get("exclude", [])
        self.k = options.get("k", X.shape[1])
        alive = (np.linalg.norm(X, axis=1) > 1e-13 * np.linalg.norm(X, axis=1).max()).all(axis=0)
        self.possible = [p for p in np.flatnonzero(alive).tolist() if p not in self.exclude]
        self.known: dict[tuple[int, ...], tuple[float, float]] = {}

    @property
    def orders(self) -> float:
        """How many orders of magnitude the lengths span that the pursuit gives the columns, 1/g."""
        power = np.linalg.norm(self.X[:, :, self.possible], axis=1) ** self.c
        return float(np.logaddexp(power, 1 / power).max() - 1) / np.log(10)

    @property
    def condition(self) -> float:
        """Of the rows: the pursuit's constraint X B = I is met to about this times the rounding of float64."""
        s = np.linalg.svd(self.X[:, :, self.possible], compute_uv=False)
        return float((s[:, 0] / np.maximum(s[:, -1], 1e-300)).max())

    def interval(self, subset: tuple[int, ...]) -> tuple[float, float]:
        subset = tuple(sorted(subset))
        if subset not in self.known:
            self.known[subset] = self._interval(self.X[:, :, list(subset)])
        return self.known[subset]

    def _interval(self, stack: np.ndarray) -> tuple[float, float]:
        if any(dependent(point) for point in stack):
            return np.inf, np.inf
        lengths = np.linalg.norm(stack, axis=1, keepdims=True)
        if not lengths.all():
            return np.inf, np.inf
        unit = np.linalg.svd(stack / lengths, compute_uv=False)[:, -1].min()
        sigma = np.linalg.svd(stack, compute_uv=False)
        # a leading space is itself known to within rounding, relative to the columns before their projection
        error = 4 * self.k * EPS * sigma[:, :1]
        low, high = (self.log_loss(sigma, error * sign) for sign in (1, -1))
        doubtful = unit < DOUBTFUL or (sigma[:, -1] < 4 * error[:, 0]).any()
        return low, np.inf if doubtful else high

    def log_loss(self, sigma: np.ndarray, error: np.ndarray) -> float:
        """The paper's formula, with every singular value moved towards 1 (or away from it) by the error."""
        with np.errstate(over="ignore", divide="ignore"):
            moved = np.where(sigma < 1, np.maximum(sigma + error, 0.0), np.maximum(sigma - error, 0.0))
            power = moved**self.c
            return float(np.logaddexp.reduce((np.logaddexp(power, 1 / power) - np.log(2) - 1).ravel()))

    def best(self) -> tuple[float, float]:
        """The interval of the subset that is lowest for sure."""
        free = [p for p in self.possible if p not in self.include]
        if not set(self.include) <= set(self.possible):
            return np.inf, np.inf
        rest = combinations(free, self.k - len(self.include)) if len(self.include) <= self.k else ()
        found = [self.interval((*self.include, *some)) for some in rest]
        return min(found, key=lambda one: one[1], default=(np.inf, np.inf))

    def twins(self, p: int) -> list[int]:
        """Columns with lower numbers that are the same as p up to sign, and could be picked."""
        return [
            q
            for q in self.possible
            if q < p and all(np.array_equal(x[:, p], x[:, q]) or np.array_equal(x[:, p], -x[:, q]) for x in self.X)
        ]

    def mistakes(self, picked: Any, source: bool) -> list[str]:
        """What is wrong with the answer."""
        wrong: list[str] = []
        chosen = picked.indices.tolist()
        low, high = self.interval(tuple(chosen))
        if low == np.inf:
            return [f"columns {chosen} are dependent, status {picked.search.status}"]
        if not near(picked.log_loss, low, high):
            wrong.append(f"log-loss {picked.log_loss} is not in [{low}, {high}]")
        if not set(self.include) <= set(chosen) <= set(self.possible):
            wrong.append(f"picked {chosen}, but include={self.include} and only {self.possible} can be picked")
        others = [p for p in self.possible if p not in chosen]
        swaps = {(i, p): self.interval((*(q for q in chosen if q != i), p)) for i in chosen for p in others}
        for choice in picked.choices:
            wrong += self._wrong_choice(choice, {p: swaps[choice.index, p] for p in others}, picked)
        wrong += self._wrong_alternatives(picked, swaps)
        lowest = min(
            (swaps[i, p] for i, p in swaps if i not in self.include), default=(np.inf, np.inf), key=lambda s: s[1]
        )
        noted = any("negative price" in note for note in picked.notes)
        if picked.pursuit is not None and lowest[1] < low - 1e-7 and not noted:
            wrong.append(f"no note, though a swap lowers the log-loss from {low} to {lowest[1]}")
        least = min((swaps[i, p][0] for i, p in swaps if i not in self.include), default=np.inf)
        if noted and least > high:
            wrong.append("a note speaks of a better column, and there is none")
        if high < 709 and picked.search.lower_bound > np.exp(high) * (1 + 1e-9):
            wrong.append(f"lower bound {picked.search.lower_bound} above the loss")
        return wrong

    def _wrong_choice(self, choice: Any, swaps: dict[int, tuple[float, float]], picked: Any) -> list[str]:
        sure = min((high for _, high in swaps.values()), default=np.inf)
        name = f"column {choice.index}"
        if choice.replacement is None:
            if sure < np.inf:
                return [f"{name}: no replacement, but one has log-loss {sure}"]
            return [] if choice.price == np.inf else [f"{name}: price {choice.price} without a replacement"]
        if choice.replacement not in swaps:
            return [f"{name}: replacement {choice.replacement} cannot be picked"]
        low, high = swaps[choice.replacement]
        if low == np.inf:
            return [f"{name}: replacement {choice.replacement} makes the subset singular, price {choice.price}"]
        wrong: list[str] = []
        if not near(choice.log_loss, low, high):
            wrong.append(f"{name}: log-loss {choice.log_loss} with {choice.replacement}, not in [{low}, {high}]")
        if low > sure and not near(low, sure, sure):
            wrong.append(f"{name}: replacement {choice.replacement} has {low}, another {sure}")
        if any(q in swaps for q in self.twins(choice.replacement)):
            wrong.append(f"{name}: replacement {choice.replacement} is not the first of identical columns")
        price = difference(choice.log_loss, picked.log_loss)
        if np.isfinite(price) and abs(price - choice.price) > 1e-9 * max(picked.loss, abs(price)):
            wrong.append(f"{name}: price {choice.price}, should be {price}")
        if not np.isfinite(price) and choice.price != price:
            wrong.append(f"{name}: price {choice.price}, should be {price}")
        return wrong

    def _wrong_alternatives(self, picked: Any, swaps: dict[tuple[int, int], tuple[float, float]]) -> list[str]:
        rivals: dict[int, tuple[float, float]] = {}
        for (i, p), (low, high) in swaps.items():
            if i not in self.include:
                a, b = rivals.get(p, (np.inf, np.inf))
                rivals[p] = (min(a, low), min(b, high))
        wrong: list[str] = []
        listed = [one.index for one in picked.alternatives]
        possible = sum(low < np.inf for low, _ in rivals.values())
        sure = sum(high < np.inf for _, high in rivals.values())
        if len(set(listed)) != len(listed) or not min(sure, 5) <= len(listed) <= min(possible, 5):
            wrong.append(f"alternatives {listed}: {sure} to {possible} were expected, at most 5")
        lows, highs = sorted(a for a, _ in rivals.values()), sorted(b for _, b in rivals.values())
        for place, one in enumerate(picked.alternatives):
            displaced = swaps.get((one.displaces, one.index), (np.inf, np.inf))
            if displaced[0] == np.inf or one.displaces in self.include:
                wrong.append(f"alternative {one.index} for {one.displaces} is none")
            elif not (near(one.log_loss, *displaced) and near(one.log_loss, lows[place], highs[place])):
                wrong.append(
                    f"alternative {one.index}: log-loss {one.log_loss}, not {displaced}, or not number {place}"
                )
            if any(q in rivals and q not in listed for q in self.twins(one.index)):
                wrong.append(f"alternative {one.index} is listed before an identical column with a lower number")
        return wrong


def near(value: float, low: float, high: float) -> bool:
    """Whether a log-loss is in the interval, to within rounding."""
    slack = 1e-9 * max(abs(value), 1.0)
    return low - slack <= value <= high + slack


def difference(log_one: float, log_other: float) -> float:
    """e^a − e^b, infinite with the right sign where that leaves float64."""
    if log_one == log_other:
        return 0.0
    if max(log_one, log_other) >= 709:
        return np.inf if log_one > log_other else -np.inf
    return float(np.exp(np.longdouble(log_one)) - np.exp(np.longdouble(log_other)))


def wrong_refusal(oracle: Table, method: str, source: bool, error: InputError) -> list[str]:
    """A refusal is wrong where a subset is independent for sure, but greedy search may miss it, a streamed pursuit
    cannot leave columns out, and the proofs are not made for every loss.
    """
    low, high = oracle.best()
    if high == np.inf or method == "greedy":
        return []
    if source and method == "two-stage" and "exclude names columns that the pursuit keeps" in str(error):
        return []
    if high > UNBOUNDED and (isinstance(error, RangeError) or method == "two-stage"):
        return []
    if method == "two-stage" and (oracle.orders > 8 or oracle.condition > 1e8):
        return []
    return [f"refused, but the best log-loss is {low}: {type(error).__name__}: {error}"]


# -------------------------------------------------------------------------------------------------------- estimators


def estimator_problem(rng: np.random.Generator) -> Outcome:
    kind = str(rng.choice(["weights", "exclude", "centring"]))
    if kind == "weights":
        return weights_problem(rng)
    return exclude_problem(rng) if kind == "exclude" else centring_problem(rng)


def fitted(estimator: Any, *given: Any, **named: Any) -> Any:
    """The estimator, or its refusal."""
    try:
        return estimator.fit(*given, **named)
    except InputError as error:
        return error


def compared(family: str, text: str, one: Any, other: Any, tolerance: float = 1e-7) -> Outcome:
    """Both refuse, or both have the same loss."""
    if isinstance(one, InputError) or isinstance(other, InputError):
        refused = [isinstance(x, InputError) for x in (one, other)]
        # a few subsets are tried outright, whatever their losses; more need bounds, which large losses have not
        beyond = any(isinstance(x, RangeError) or getattr(x, "loss_", 0.0) > np.exp(UNBOUNDED) for x in (one, other))
        return Outcome(family, "refused", () if all(refused) or beyond else (f"{one!r} and {other!r}",), text)
    log = [x.selection_.log_loss if hasattr(x, "selection_") else x.log_loss for x in (one, other)]
    wrong = () if abs(log[0] - log[1]) <= tolerance * max(abs(log[0]), 1.0) else (f"log-losses {log[0]} and {log[1]}",)
    return Outcome(family, "same", wrong, text)


def weights_problem(rng: np.random.Generator) -> Outcome:
    """A weight is a number of copies."""
    n, p = int(rng.integers(3, 11)), int(rng.integers(2, 7))
    table = rng.integers(-3, 4, (n, p)) + rng.choice([0.0, 5.0]) if rng.random() < 0.5 else rng.normal(size=(n, p))
    weight = rng.integers(0, 4, n)
    weight[rng.integers(0, n, 2)] += 1
    kind = IsometrySampleSelector if rng.random() < 0.6 else IsometryFeatureSelector
    options: dict[str, Any] = {
        "method": str(rng.choice(["exact", "exact", "two-stage"])),
        "c": float(rng.choice([0.3, 1.0, 2.0])),
        "unit": [None, "median", "each", 2.0][int(rng.integers(4))],
        "k": int(rng.integers(1, 4)) if rng.random() < 0.7 else None,
    }
    if kind is IsometrySampleSelector:
        options["standardize"] = bool(rng.random() < 0.5)
    scale = float(rng.choice([1.0, 1.0, 0.1, 1 / 3]))
    weighted = fitted(kind(**options), table, sample_weight=scale * weight)
    repeated = fitted(kind(**options), table.repeat(weight, axis=0))
    text = script(
        f"from isopursuit.estimators import {kind.__name__} as Kind\n"
        f"print(Kind(**options).fit(table, sample_weight={scale} * weight).loss_)\n"
        "print(Kind(**options).fit(table.repeat(weight.astype(int), axis=0)).loss_)",
        table=np.asarray(table, dtype=float),
        weight=weight.astype(float),
        options=options,
    )
    outcome = compared("weights", text, weighted, repeated)
    if not isinstance(weighted, InputError) and not isinstance(repeated, InputError) and not outcome.failures:
        for name in ("mean_", "scale_"):
            if not np.allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12, atol=1e-12):
                return Outcome("weights", "same", (f"{name} differs",), text)
    return outcome


def exclude_problem(rng: np.random.Generator) -> Outcome:
    """An estimator that excludes candidates answers as `select` does."""
    n, p = int(rng.integers(3, 9)), int(rng.integers(3, 9))
    table = rng.normal(size=(n, p)) * np.exp(rng.uniform(-2, 2, p))
    samples = bool(rng.random() < 0.5)
    X = table.T if samples else table / np.sqrt(n)
    k = int(rng.integers(1, max(2, min(n, p) - 1)))
    out = sorted(rng.choice(X.shape[1], int(rng.integers(1, 3)), replace=False).tolist())
    options: dict[str, Any] = {
        "k": k,
        "method": str(rng.choice(["exact", "two-stage", "greedy"])),
        "exclude": out,
        "unit": [None, "median", 2.0][int(rng.integers(3))],
    }
    kind = IsometrySampleSelector if samples else IsometryFeatureSelector
    text = script(
        f"from isopursuit.estimators import {kind.__name__} as Kind\n"
        f"print(Kind(**options).fit(table).loss_, ip.select({'table.T' if samples else 'table / len(table) ** 0.5'}, "
        "**options).loss)",
        table=table,
        options=options,
    )
    try:
        direct: Any = ip.select(X, **options)
    except InputError as error:
        direct = error
    return compared("exclude", text, fitted(kind(**options), table), direct)


def centring_problem(rng: np.random.Generator) -> Outcome:
    """A table far from zero, with no more rows than columns, answers as the same table centred exactly."""
    n = int(rng.integers(3, 8))
    p = int(rng.integers(n, 12))
    whole = rng.integers(-50, 51, (n, p))
    shift = 10 ** rng.integers(1, 9, p)
    means = [Fraction(int(column.sum()), n) for column in whole.T]
    centred = np.array([[float(Fraction(int(x)) - m) for x, m in zip(row, means, strict=True)] for row in whole])
    samples = bool(rng.random() < 0.5)
    kind = IsometrySampleSelector if samples else IsometryFeatureSelector
    k = int(rng.integers(1, n)) if not samples or rng.random() < 0.5 else None
    if k is not None and k < n - 1:
        k = n - 1  # the whole space, which no tie leaves open
    options: dict[str, Any] = {"k": k, "method": str(rng.choice(["exact", "two-stage"]))}
    if samples:
        options["standardize"] = True
    text = script(
        f"from isopursuit.estimators import {kind.__name__} as Kind\nprint(Kind(**options).fit(table))",
        table=(whole + shift).astype(float),
        options=options,
    )
    far = fitted(kind(**options), (whole + shift).astype(float))
    at_zero = fitted(kind(**options), centred)
    if isinstance(far, InputError):
        return Outcome("centring", "refused", (f"refused: {far}",), text)
    if not far.selection_.search.optimal or not np.isfinite(far.loss_):
        return Outcome("centring", "not finite", (f"loss {far.loss_}, optimal {far.selection_.search.optimal}",), text)
    # the table holds its entries exactly, so that only the computed mean has a relative error
    return compared("centring", text, far, at_zero, 1e-4)
