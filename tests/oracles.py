"""Independent oracles, written from the paper's formulas: the loss, brute force, and a conic solver."""

import warnings
from itertools import combinations, islice

import cvxpy as cp
import numpy as np


def g(t, c=1.0):
    """What the loss adds for a singular value t, and the normalization divides by."""
    with np.errstate(over="ignore", divide="ignore"):
        u = np.asarray(t, dtype=float) ** c
        return (np.exp(u) + np.exp(1 / u)) / (2 * np.e)


def losses(matrices, c=1.0):
    """Isometry losses of a stack of matrices (..., D, k)."""
    return g(np.linalg.svd(matrices, compute_uv=False), c).sum(axis=-1)


def best_loss(X, k, c=1.0, include=()):
    """The least loss of k columns of X, by trying every subset."""
    subsets = (
        (*include, *rest) for rest in combinations([p for p in range(X.shape[1]) if p not in include], k - len(include))
    )
    least = np.inf
    while some := list(islice(subsets, 20_000)):
        least = min(least, float(losses(X[:, some].transpose(1, 0, 2), c).min()))
    return least


def clarabel(Xs, Ys=None, penalty=0.0):
    """The pursuit's optimum by CVXPY with Clarabel, written from the paper's formula."""
    Ys = [np.eye(len(X)) for X in Xs] if Ys is None else Ys
    Bs = [cp.Variable((X.shape[1], Y.shape[1])) for X, Y in zip(Xs, Ys, strict=True)]
    norms = cp.sum(cp.norm(cp.hstack(Bs), 2, axis=1))
    if penalty == 0:
        problem = cp.Problem(cp.Minimize(norms), [X @ B == Y for X, B, Y in zip(Xs, Bs, Ys, strict=True)])
    else:
        misfit = sum(cp.sum_squares(Y - X @ B) for X, B, Y in zip(Xs, Bs, Ys, strict=True))
        problem = cp.Problem(cp.Minimize(0.5 * misfit + penalty * norms))
    problem.solve(solver="CLARABEL")
    return float(problem.value)


def clarabel_projection(Xs, k):
    """min Σ‖B_p‖ over X B = P, 0 ⪯ P ⪯ I, tr P = k, the ‖B_p‖, and whether Clarabel calls them accurate."""
    Bs = [cp.Variable((X.shape[1], len(X))) for X in Xs]
    Ps = [cp.Variable((len(X), len(X)), PSD=True) for X in Xs]
    rules = [X @ B == P for X, B, P in zip(Xs, Bs, Ps, strict=True)]
    rules += [np.eye(len(X)) - P >> 0 for X, P in zip(Xs, Ps, strict=True)]
    rules += [cp.trace(P) == k for P in Ps]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.norm(cp.hstack(Bs), 2, axis=1))), rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where X lacks rank, the solver may call its answer inaccurate
        problem.solve(solver="CLARABEL")
    return float(problem.value), np.linalg.norm(np.hstack([B.value for B in Bs]), axis=1), problem.status == "optimal"


def random_rotation(D, rng):
    Q, R = np.linalg.qr(rng.normal(size=(D, D)))
    return Q * np.sign(np.diag(R))
