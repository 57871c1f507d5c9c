"""The convex program on hostile problems, checked from the returned numbers alone in extended precision.

Each answer's coefficients and dual point are evaluated in np.longdouble from the formulas of the paper. Permuted
columns must give the permuted answer, a claim that the solution is unique is attacked with a linear program, and on one
seed in ten CVXPY with Clarabel must agree.
"""

from __future__ import annotations

import contextlib
import os
import tempfile

import numpy as np
from oracles import clarabel, random_rotation
from scipy.linalg import hadamard
from scipy.optimize import linprog

import isopursuit as ip
from fuzz.harness import Outcome, script
from isopursuit.errors import InputError, RangeError

TOL = 1e-10  # the default gap of basis_pursuit
CLOSE = 1e-9  # how exactly a dual point must be feasible
LONG = np.longdouble


def run(seed: int) -> Outcome:
    """One random problem."""
    rng = np.random.default_rng([seed, 12])
    family = str(rng.choice(list(FAMILIES)))
    D = int(rng.integers(1, 9))
    P = int(rng.integers(D, 41))
    X = FAMILIES[family](rng, D, P)
    kind = str(rng.choice(["pursuit", "isometry", "points", "path"], p=[0.64, 0.14, 0.14, 0.08]))
    with _silent() as said:
        outcome = KINDS[kind](rng, family, X, seed)
    if said():
        outcome = Outcome(
            outcome.family, outcome.verdict, (*outcome.failures, f"printed {said()!r} on stderr"), outcome.script
        )
    return outcome


# ------------------------------------------------------------------------------------------------------ columns


def _lattice(rng, D, P):
    size = int(rng.integers(1, 5))
    return rng.integers(-size, size + 1, (D, P)).astype(float)


def _signs(rng, D, P):
    return rng.choice([-1.0, 1.0], (D, P))


def _hadamard(rng, D, P):
    D = 2 ** int(rng.integers(1, 4))
    columns = np.hstack([np.eye(D), hadamard(D) / rng.choice([1.0, np.sqrt(D)]), np.roll(hadamard(D), 1, axis=1)])
    return columns[:, rng.permutation(columns.shape[1])[: max(P, 2 * D)]]


def _gaussian(rng, D, P):
    return rng.normal(size=(D, P))


def _equal_lengths(rng, D, P):
    X = rng.normal(size=(D, P))
    return X / np.linalg.norm(X, axis=0)


def _duplicates(rng, D, P):
    base = _lattice(rng, D, P) if rng.random() < 0.5 else rng.normal(size=(D, P))
    picked = rng.integers(0, P, P)
    return np.hstack([base, base[:, picked] * rng.choice([-1.0, 1.0], P)])


def _near_duplicates(rng, D, P):
    base = rng.normal(size=(D, P)) if rng.random() < 0.5 else _lattice(rng, D, P)
    picked = rng.integers(0, P, P // 2 + 1)
    return np.hstack([base, base[:, picked] + 10 ** rng.uniform(-10, -4) * rng.normal(size=(D, len(picked)))])


def _hidden_basis(rng, D, P):
    return np.hstack([rng.normal(size=(D, P)) / np.sqrt(D), random_rotation(D, rng)])[:, rng.permutation(P + D)]


def _spread_lengths(rng, D, P):
    return rng.normal(size=(D, P)) * np.exp(rng.uniform(-4, 4, P))


def _ill_conditioned(rng, D, P):
    rows = 10 ** rng.uniform(-8, 0, D)
    X = rows[:, None] * rng.normal(size=(D, P))
    return X if rng.random() < 0.5 else random_rotation(D, rng) @ X


FAMILIES = {
    "lattice": _lattice,
    "signs": _signs,
    "hadamard": _hadamard,
    "gaussian": _gaussian,
    "equal lengths": _equal_lengths,
    "duplicates": _duplicates,
    "near-duplicates": _near_duplicates,
    "hidden basis": _hidden_basis,
    "spread lengths": _spread_lengths,
    "ill-conditioned": _ill_conditioned,
}


def _target(rng, X):
    """The identity (None), a column, a few columns, a combination, zero columns among others, or anything."""
    D, P = X.shape
    kind = int(rng.integers(0, 7))
    r = int(rng.integers(1, D + 2))
    if kind == 0:
        return None
    if kind == 1:
        return X[:, [int(rng.integers(P))]].copy()
    if kind == 2:
        return X[:, rng.integers(0, P, r)].copy()
    if kind == 3:
        return rng.normal(size=(D, 1)) @ rng.normal(size=(1, r))
    if kind == 4:
        return rng.integers(-2, 3, (D, r)).astype(float)
    if kind == 5:
        return np.hstack([np.zeros((D, 1)), rng.normal(size=(D, r)), np.zeros((D, 1))])
    return rng.normal(size=(D, r))


def _scale(rng):
    return 1.0 if rng.random() < 0.5 else float(10 ** rng.uniform(-8, 8))


def _penalty(rng, Xs, Ys):
    if rng.random() < 0.6:
        return 0.0
    pulls = [X.T if Ys is None else X.T @ Ys[i] for i, X in enumerate(Xs)]
    largest = float(np.sqrt(sum((pull**2).sum(1) for pull in pulls)).max())
    return largest * float(10 ** rng.uniform(-10, 0.3))


# -------------------------------------------------------------------------------------------------------- kinds


def _pursuit(rng, family, X, seed):
    X = _scale(rng) * X
    Y = _target(rng, X)
    Y = Y if Y is None else _scale(rng) * Y
    penalty = _penalty(rng, [X], None if Y is None else [Y])
    text = script("print(ip.basis_pursuit(X, Y, penalty=penalty))", X=X, Y=Y, penalty=penalty)
    return _answered(
        family,
        lambda order: ip.basis_pursuit(X[:, order], Y, penalty=penalty),
        [X],
        None if Y is None else [Y],
        penalty,
        rng,
        text,
        seed,
    )


def _points(rng, family, X, seed):
    D, P = X.shape
    n = int(rng.integers(2, 4))
    scale = _scale(rng)
    Xs = [scale * X, *(scale * FAMILIES[family](rng, D, P) for _ in range(n - 1))]
    Xs = [one for one in Xs if one.shape[0] == D]
    Xs = [one[:, : min(o.shape[1] for o in Xs)] for one in Xs]
    Ys = None
    if rng.random() < 0.6:
        r = int(rng.integers(1, D + 1))
        Ys = [one[:, :r].copy() if rng.random() < 0.5 else rng.normal(size=(D, r)) for one in Xs]
    penalty = _penalty(rng, Xs, Ys)
    text = script("print(ip.basis_pursuit(Xs, Ys, penalty=penalty))", Xs=Xs, Ys=Ys, penalty=penalty)
    return _answered(
        f"points, {family}",
        lambda order: ip.basis_pursuit([one[:, order] for one in Xs], Ys, penalty=penalty),
        Xs,
        Ys,
        penalty,
        rng,
        text,
        seed,
    )


def _isometry(rng, family, X, seed):
    c = float(rng.choice([0.3, 1.0, 2.0]))
    X = X * float(np.exp(rng.uniform(-1, 1)))
    text = script("print(ip.isometry_pursuit(X, c))", X=X, c=c)
    N = ip.symmetric_normalize(X, c)
    lengths = np.linalg.norm(X.astype(LONG), axis=0)
    safe = np.where(lengths > 0, lengths, 1)
    with np.errstate(over="ignore", under="ignore"):
        new = np.where(lengths > 0, 2 * np.exp(LONG(1)) / (np.exp(safe ** LONG(c)) + np.exp(safe ** LONG(-c))), 0)
    wrong = np.abs(np.linalg.norm(N.astype(LONG), axis=0) - new) > 1e-12 * new + 1e-300
    if wrong.any():
        return Outcome(family, "wrong normalization", (f"lengths of columns {np.flatnonzero(wrong).tolist()}",), text)
    return _answered(
        f"isometry, {family}", lambda order: ip.isometry_pursuit(X[:, order], c), [N], None, 0.0, rng, text, seed
    )


def _path(rng, family, X, seed):
    X = _scale(rng) * X
    Y = _target(rng, X)
    Y = Y if Y is None else _scale(rng) * Y
    smallest = float(10 ** rng.uniform(-8, -1))
    text = script("print(*ip.lasso_path(X, Y, penalties=5, smallest=smallest))", X=X, Y=Y, smallest=smallest)
    family = f"path, {family}"
    try:
        path = ip.lasso_path(X, Y, penalties=5, smallest=smallest)
    except InputError as error:
        return Outcome(family, f"refused ({type(error).__name__})", (), text)
    failures: list[str] = []
    for found in path:
        told = _check(found, [X], None if Y is None else [Y], found.penalty, 1e-8)
        failures += [f"λ = {found.penalty:.3g}: {one}" for one in told]
    statuses = {found.status for found in path}
    return Outcome(family, "optimal" if statuses == {"optimal"} else "stalled", tuple(failures), text)


KINDS = {"pursuit": _pursuit, "isometry": _isometry, "points": _points, "path": _path}


# ------------------------------------------------------------------------------------------------------- checks


def _answered(family, solve, Xs, Ys, penalty, rng, text, seed):
    P = Xs[0].shape[1]
    try:
        found = solve(np.arange(P))
    except InputError as error:
        return Outcome(family, f"refused ({type(error).__name__})", (), text)
    rounding = 1e-13 if family.startswith("isometry") else 0.0
    failures = _check(found, Xs, Ys, penalty, TOL, rounding)
    order = rng.permutation(P)
    failures += _permuted(found, solve(order), order)
    if found.unique and found.status == "optimal":
        failures += _second_solution(found, Xs, rng)
    if found.optimum is not None:
        failures += [f"minimum norm: {one}" for one in _least(found, Xs, Ys, penalty, rounding)]
    decidable = _decidable(Xs, Ys, penalty)
    if seed % 10 == 0 and decidable and found.status == "optimal":
        failures += _conic(found, Xs, Ys, penalty)
    verdict = found.status if found.status == "optimal" or not decidable else f"{found.status} though well-conditioned"
    return Outcome(family, verdict, tuple(failures), text)


def _check(found, Xs, Ys, penalty, tol, rounding=0.0):
    """The certificate, recomputed in extended precision from the returned coefficients and dual point.

    `rounding` is the relative error of the entries of X, for matrices that the library computes by itself.
    """
    many = found.dual.ndim == 3
    Bs, nus = (found.coefficients, found.dual) if many else (found.coefficients[None], found.dual[None])
    D = len(Xs[0])
    with np.errstate(under="ignore"):
        X = [one.astype(LONG) for one in Xs]
        Y = [np.eye(D, dtype=LONG)] * len(X) if Ys is None else [one.astype(LONG) for one in Ys]
        B, nu = Bs.astype(LONG), nus.astype(LONG)
        norms = np.sqrt(sum((b**2).sum(1) for b in B))
        slopes = np.sqrt(sum(((v.T @ x) ** 2).sum(0) for v, x in zip(nu, X, strict=True)))
        misfit = [y - x @ b for x, y, b in zip(X, Y, B, strict=True)]
        inner = sum((y * v).sum() for y, v in zip(Y, nu, strict=True))
        size = np.sqrt(sum((y**2).sum() for y in Y))
        missed = np.sqrt(sum((m**2).sum() for m in misfit))
        if penalty == 0:
            primal, dual = norms.sum(), inner
        else:
            primal = missed**2 / 2 + LONG(penalty) * norms.sum()
            dual = LONG(penalty) * inner - LONG(penalty) ** 2 / 2 * (nu**2).sum()
    proof = found.certificate
    optimal = found.status == "optimal"
    failures: list[str] = []
    if not np.isfinite([proof.primal, proof.dual, proof.residual]).all():
        failures.append(f"not finite: {proof}")
    if slopes.max(initial=0) > 1 + CLOSE:
        failures.append(f"dual infeasible: ‖νᵀx‖ − 1 = {float(slopes.max() - 1):.2e} ({found.status})")
    if proof.dual > proof.primal:
        failures.append(f"dual {proof.dual!r} above primal {proof.primal!r}")
    if dual < proof.dual * (1 - 1e-12) - 1e-14 * abs(proof.primal):
        failures.append(f"the dual point gives {float(dual)!r}, stated {proof.dual!r}")
    if primal > proof.primal * (1 + 1e-9) or (optimal and primal < proof.primal * (1 - 1e-8)):
        failures.append(f"the coefficients give {float(primal)!r}, stated {proof.primal!r}")
    products = sum(float(np.linalg.norm(np.abs(x) @ np.abs(b))) for x, b in zip(Xs, Bs, strict=True))
    if penalty == 0 and missed > proof.residual * size + rounding * products:
        failures.append(f"residual {float(missed / size) if size else 0:.2e}, stated {proof.residual:.2e}")
    if np.abs(norms - found.weights).max() > 1e-9 * norms.max():
        failures.append("weights are not the norms of the coefficients")
    if not set(found.support.tolist()) <= set(found.tied.tolist()):
        failures.append("support outside the tied set")
    if optimal and abs(primal - dual) > 1.001 * tol * primal:
        failures.append(f"optimal with a gap of {float((primal - dual) / primal):.2e}")
    if optimal and penalty == 0 and missed > 0:
        # what it costs to remove the residual, by least squares over all columns
        scale = max(float(np.abs(x).max()) for x in X)
        with np.errstate(under="ignore"):
            right = [(m / missed).astype(float) for m in misfit]
            removed = [np.linalg.lstsq((x / scale).astype(float), m)[0] for x, m in zip(X, right, strict=True)]
        cost = sum(np.linalg.norm(one, axis=1).sum() for one in removed) * missed / scale
        if cost > 1.001 * tol * primal and missed > 1e-14 * size:
            failures.append(f"optimal, but the residual {float(missed / size):.2e} costs {float(cost / primal):.2e}")
    return failures


def _least(found, Xs, Ys, penalty, rounding):
    """The solution of least norm is as good, and none is longer; it is refused where rounding prevents it."""
    try:
        least = found.minimum_norm()
    except RangeError:
        return []
    failures = _check(least, Xs, Ys, penalty, 10 * TOL, rounding)
    if np.linalg.norm(least.weights) > np.linalg.norm(found.weights) * (1 + 1e-6):
        failures.append("weights of a larger norm")
    return failures


def _permuted(found, other, order):
    """The same answer."""
    failures: list[str] = []
    if found.status != other.status:
        failures.append(f"{found.status}, with its columns permuted {other.status}")
    if sorted(order[other.support].tolist()) != found.support.tolist():
        failures.append("another support with permuted columns")
    if sorted(order[other.tied].tolist()) != found.tied.tolist():
        failures.append("another tied set with permuted columns")
    if found.unique != other.unique:
        failures.append(f"unique {found.unique}, with its columns permuted {other.unique}")
    return failures


def _second_solution(found, Xs, rng):
    """Look for other weights w ≥ 0 with Σ w_p x_p u_pᵀ = X B, u_p = νᵀx_p, on the columns where ‖u_p‖ = 1 exactly."""
    if not len(found.support):
        return []
    nus = found.dual if found.dual.ndim == 3 else found.dual[None]
    u = [x.T @ v for x, v in zip(Xs, nus, strict=True)]
    length = np.sqrt(sum((one**2).sum(1) for one in u))
    tied = np.flatnonzero(length >= 1 - 1e-11)
    tied = np.union1d(tied, found.support)
    A = np.vstack(
        [np.einsum("dp,pr->drp", x[:, tied], one[tied]).reshape(-1, len(tied)) for x, one in zip(Xs, u, strict=True)]
    )
    sizes = np.abs(A).max(axis=0)  # short columns have squares that underflow
    A = A / sizes
    _, s, vt = np.linalg.svd(A)
    rank = int((s > 1e-13 * s[0]).sum())
    if rank == len(tied):
        return []
    w = found.weights[tied] * sizes
    # along the null space, from w: w + N z ≥ 0
    N = vt[rank:].T
    for goal in (N.sum(0), rng.normal(size=N.shape[1]) @ np.eye(N.shape[1])):
        bounds = [(-1, 1)] * N.shape[1]
        best = linprog(-goal, A_ub=-N, b_ub=w / w.max(), bounds=bounds)
        if best.status == 0 and np.abs(N @ best.x).max() > 1e-4:
            other = np.maximum(w / w.max() + N @ best.x, 0)
            if np.abs(A @ (other - w / w.max())).max() < 1e-12:
                return [f"unique, but weights change by {np.abs(other - w / w.max()).max():.1e} along a null direction"]
    return []


def _decidable(Xs, Ys, penalty):
    """Whether float64 has digits to spare: no nearly dependent rows or columns, no tiny penalty, a clear target."""
    for i, X in enumerate(Xs):
        lengths = np.linalg.norm(X, axis=0)
        unit = X[:, lengths > 0] / lengths[lengths > 0]
        s = np.linalg.svd(X, compute_uv=False)
        if s[-1] < 1e-4 * s[0]:
            return False
        G = np.abs(unit.T @ unit)
        if ((G < 1 - 1e-14) & (G > 1 - 1e-6)).any():
            return False
        if Ys is not None:
            s = np.linalg.svd(Ys[i], compute_uv=False)
            if s[0] == 0 or ((s > 1e-13 * s[0]) & (s < 1e-5 * s[0])).any():
                return False
    if penalty == 0:
        return True
    pulls = [X.T if Ys is None else X.T @ Ys[i] for i, X in enumerate(Xs)]
    return bool(penalty > 1e-6 * np.sqrt(sum((pull**2).sum(1) for pull in pulls)).max())


def _conic(found, Xs, Ys, penalty):
    """Clarabel's optimum, at entries near 1, lies within the bounds up to its own tolerance."""
    size = max(float(np.abs(X).max()) for X in Xs)
    reach = 1.0 if Ys is None else max(float(np.abs(Y).max()) for Y in Ys)
    scaled = [X / size for X in Xs]
    Zs = None if Ys is None else [Y / reach for Y in Ys]
    try:
        optimum = clarabel(scaled, Zs, penalty / size / reach) * (reach / size if penalty == 0 else reach**2)
    except UserWarning:  # Clarabel itself doubts its answer
        return []
    low, high = found.certificate.dual, found.certificate.primal
    if not low - 1e-5 * high <= optimum <= high + 1e-5 * high:
        return [f"Clarabel's optimum {optimum!r} outside [{low!r}, {high!r}]"]
    return []


@contextlib.contextmanager
def _silent():
    """Catches what compiled code prints on stderr; yields a function that tells it."""
    text: list[str] = []
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: text[0] if text else ""
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text.append(file.read().decode(errors="replace"))
