"""Independent oracles: a conic solver for the convex program, written from the paper's formula."""

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


def random_rotation(D, rng):
    Q, R = np.linalg.qr(rng.normal(size=(D, D)))
    return Q * np.sign(np.diag(R))
