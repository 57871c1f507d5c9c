"""Independent oracles: a conic solver for the convex program, written from the paper's formula."""

import warnings

import cvxpy as cp
import numpy as np


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
