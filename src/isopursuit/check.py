"""Check a proof file. This needs only NumPy 2, and nothing of the package: python check.py FILE X.npy

The claim: no k columns of X (D, P), with those to include and none of those to exclude, have a loss below `bound`. The
file has only hints; all that is compared is computed from X.

**One inequality.** The loss of S is the sum of h(t) = (e^p + e^(1/p)) / 2e, p = t^(c/2), over the eigenvalues t_1 >=
... >= t_k of X_S'X_S. For any symmetric K with eigenvalues K_1 >= K_2 >= ..., any a >= 0, and all t_i in [low, high],
    loss(S) >= sum over S of x'Kx - sum over i <= k of f(K_i) - a log det(X_S'X_S),
    f(s) = max over t in [low, high] of s t - h(t) - a log t,
as h(t_i) + a log t_i >= K_i t_i - f(K_i) by definition, and sum K_i t_i >= tr(K X_S X_S') (von Neumann). A better
subset has h(t_i) < bound - (k - 1), which gives low and high. Let C be the j chosen columns of a node, T the m = k - j
others, R the triangle of C, and Z what is orthogonal to C: log det(X_S'X_S) = sum of log R_ii^2 + log det(Z_T'Z_T).
For any F with singular values g_1 <= g_2 <= ..., and W = FZ, log det(Z_T'Z_T) <= log det(W_T'W_T) - sum over i <= m of
log g_i^2 (Horn), and log det(W_T'W_T) <= sum over T of log |w|^2 (Hadamard). So base + the m least scores bounds a
node. K and F come from weights w in the file: M = sum over C of xx' + sum of w xx' has eigenpairs e, V, and K =
V s(e) V' with the slope s of the convex hull of h + a log; F = N^(-1/2), N the part of M orthogonal to C. If k < D, the
least e are averaged so that k have the same sum. Bad weights only make a bound weak.

**Interlacing.** loss(S) >= loss(C) + m, and the least eigenvalue of a better subset is above a number `low` of the
node. So (Y + CA)'(Y + CA) - low (A'A + I) is positive definite, for any coefficients A of C and any columns Y of T.

**Cover.** The root has all subsets. A candidate is removed if its own bound reaches `bound`. A node is closed if its
bound does, or if it is enumerated; else two nodes replace it, the subsets with one column and those without. At the
end no node is left. An enumeration adds columns to sets in the order of their scores. A set is left out if its bound
reaches `bound`, where log det(W_T'W_T) is at most that of the set plus log |w|^2 of the others (Fischer), or if the
matrix of interlacing is not positive definite on it. Both need v'Gv for v = (b, -1) and any b: a column multiplies
det G by at most this, and G is not positive definite if it is negative.

**Rounding.** U = 2^-53. A sum of n products has an error of at most n U times the sum of their magnitudes; exp, log,
sqrt and power are assumed to be within 8 U. If ||Q'Q - I|| <= d is measured, squared singular values of Q'X are within
1 +- d of those of X, and eigenvalues of V diag(s) V' within 1 +- d of s (Ostrowski). Errors of columns, a share r of
the least singular value, change a loss L by at most c log(2e L) r L, as |t h'(t)| <= (c/2) max(p, 1/p) h. On a cell of
width w, h + a log is above its chord minus w^2/8 max (h + a log)''. Other errors are subtracted from bounds.
"""

# pyright: reportUnknownVariableType=false

import hashlib
import json
import math
import sys
import time
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

FORMAT, VERSION, END = "isopursuit proof", 1, b"end\n"
CLOSED, BRANCHED, ENUMERATED = 0, 1, 2  # kinds of nodes
U, WEIGHT = 2.0**-53, 65535  # a weight is an integer divided by this
CELLS, MOST_CHANGE = 2**14, 1e-10  # of the grid for f; of singular values by rotations, relative
MOST_NODES, MOST_ENTRIES = 256, 2**24  # nodes that are read together, and the numbers of their columns
MOST_SUBSETS, PIECE = 2**17, 2**17  # subsets of an enumerated node, also if most are left out; entries of its tables


class RefusedError(ValueError):
    """The file does not prove its claim for this matrix."""


def digest(X: Any) -> str:
    """SHA-256 of D and P as 8 bytes each, and of the columns one after the other as float64, all little-endian."""
    return hashlib.sha256(np.array(X.shape, "<u8").tobytes() + np.ascontiguousarray(X.T, "<f8").tobytes()).hexdigest()


def loss_range(low: Any, high: Any, c: float) -> tuple[Any, Any]:
    """Bounds of h where log t is in [low, high]: below, and above. h(t) = h(1/t) grows with |log t|."""
    sizes = np.stack([np.maximum(np.maximum(low, -high), 0), np.maximum(np.abs(low), np.abs(high))])
    p = np.exp(np.minimum(c / 2 * sizes, math.log(700)))
    h = (np.exp(p) + np.exp(1 / p)) / (2 * math.e)
    return h[0] * (1 - 64 * U * (1 + p[0])), h[1] * (1 + 64 * U * (1 + p[1]))


def least_log(loss: Any, c: float) -> Any:
    """A number not above log t for all t with h(t) < loss."""
    target = 2 * math.e * np.maximum(loss, 1.0) * (1 + 1e-12)
    p = np.log(target)
    for _ in range(4):  # from above: e^p + e^(1/p) = target
        p = np.log(target - np.exp(1 / p))
    return -2 / c * np.log(p) - 1e-9


class Envelope:
    """The lower hull of h + a log on [low, high]: its vertices (t, v), and the slopes between them."""

    def __init__(self, c: float, a: float, low: float, high: float) -> None:
        start, end, half = math.log(low), math.log(high), c / 2
        x = max(-start, end) * np.sinh(8 * np.linspace(-1, 1, CELLS + 1)) / math.sinh(8)  # fine near t = 1
        t = np.unique(np.concatenate([[low, high], np.exp(x[(x > start) & (x < end)]).clip(low, high)]))
        p = np.power(t, half)
        rising, falling = p * np.exp(p), np.exp(1 / p) / p * (half * (1 + 1 / p) + 1)
        # t^2 h'' = c/4e [p e^p ((c/2)(1 + p) - 1) + (1/p) e^(1/p) ((c/2)(1 + 1/p) + 1)]: each factor is monotone
        factor = half * (1 + p[1:]) - 1
        bend = c / (4 * math.e) * (np.where(factor > 0, rising[1:], rising[:-1]) * factor + falling[:-1])
        drop = np.maximum(bend + 1e-9 * np.abs(bend) - a, 0.0) * (np.diff(t) / t[:-1]) ** 2 / 7.9
        h, log = (np.exp(p) + np.exp(1 / p)) / (2 * math.e), a * np.log(t)
        v = h + log - np.maximum(np.append(drop, 0.0), np.append(0.0, drop)) - 64 * U * ((1 + p + 1 / p) * h + abs(log))
        points = list(zip(t.tolist(), v.tolist(), strict=True))
        hull = [(*points[0], -math.inf)]  # with the slopes before them
        for at, value in points[1:]:
            while (slope := (value - hull[-1][1]) / (at - hull[-1][0])) <= hull[-1][2]:
                hull.pop()
            hull.append((at, value, slope))
        self.t, self.v, self.slopes = np.array(hull).T
        self.slopes = self.slopes[1:]
        # a vertex that rounding leaves out, or whose neighbour is taken: each costs at most 16 U max |v|
        self.error = 16 * U * len(t) * float(np.abs(v).max())

    def line(self, e: Any, k: int, defect: float) -> tuple[Any, Any]:
        """Slopes at e (B, D), descending, and f of the first k, from above, if they can change by a share `defect`."""
        slopes = self.slopes[np.clip(np.searchsorted(self.t, e) - 1, 0, len(self.slopes) - 1)]
        s = slopes[:, :k] + defect * np.abs(slopes[:, :k])  # f increases
        t, v = (vertices[np.searchsorted(self.slopes, s)] for vertices in (self.t, self.v))
        return slopes, s * t - v + 8 * U * (np.abs(s) * t + np.abs(v)) + self.error


def spread(e: Any, k: int) -> Any:
    """Eigenvalues (B, D), descending, with the least ones averaged so that the first k have the same sum."""
    D = e.shape[1]
    rest = np.cumsum(e[:, ::-1], axis=1)[:, ::-1][:, :k] / (k - np.arange(k))
    top = np.argmax((rest >= e[:, :k]) | (np.arange(k) == k - 1), axis=1)[:, None]
    return np.where((np.arange(D) < top) | (k == D), e, np.take_along_axis(rest, top, axis=1))


def defect(Q: Any) -> Any:
    """Bounds on ||Q'Q - I|| of matrices (B, m, n)."""
    return np.linalg.norm(Q.mT @ Q - np.eye(Q.shape[2]), axis=(1, 2)) * (1 + 1e-9) + Q.shape[1] * Q.shape[2] * U


def log_eigenvalues(A: Any) -> tuple[Any, Any]:
    """Bounds on the logarithms of the eigenvalues of AA', ascending, for matrices (B, k, D): below, and above."""
    _, k, D = A.shape
    W = np.linalg.eigh(A @ A.mT)[1]
    rows = W.mT @ A  # nearly orthogonal, so their lengths are nearly the singular values
    size = np.maximum(np.linalg.norm(rows, axis=2), 1e-150)
    error = defect(W) + defect((rows / size[..., None]).mT) + k * (D + 8) * U
    error += 3 * k**1.5 * U * np.linalg.norm(A, axis=(1, 2)) / size.min(axis=1)
    logs = 2 * np.log(np.sort(size, axis=1))
    error = np.where(error < 0.1, 1.2 * error, np.inf)[:, None] + 16 * U * np.abs(logs)
    return logs - error, logs + error


class Tree:
    """The nodes that are left, and all that is known about the columns. A writer of proofs uses it, too."""

    def __init__(self, X: Any, header: dict[str, Any]) -> None:
        self.k, self.c, self.a, bound = header["k"], header["c"], header["a"], header["bound"]
        columns, error = compared(X, header["unit"], header["exclude"])
        self.columns, (D, P) = np.ascontiguousarray(columns.T), columns.shape
        self.number, self.most = "<u2" if P <= 2**16 else "<u4", min(MOST_NODES, max(MOST_ENTRIES // (P * D), 1))
        low = np.exp(least_log(bound - self.k + 1, self.c))
        high = 1 / low  # h(t) = h(1 / t)
        squares = (self.columns * self.columns).sum(axis=1)
        allowed = (squares > low * (1 - 1e-9)) & (squares < high * (1 + 1e-9))
        include = np.array(header["include"], int)
        allowed[header["exclude"]] = False
        closed = bound <= self.k or not allowed[include].all()  # no loss is below k
        largest = np.sort(squares[allowed])[-self.k :]
        self.longest, trace = float(largest.max(initial=0.0)), float(largest.sum()) * (1 + 1e-9)
        # what a rotation changes: Q'Q - I, and the columns relative to the least singular value, here and of the subset
        self.defect, self.stray = (16 * D**1.5 + 2 * D**2) * U, 8 * D**1.5 * U
        worst, size = max(bound, header["loss"], 1), max(trace, float(squares[header["subset"]].sum()))
        least = np.exp(least_log(worst - self.k + 1, self.c))
        change = error + self.defect + (self.stray + error) * np.sqrt(size / least)
        if not change < MOST_CHANGE:
            raise RefusedError("Rounding is too large compared with the least singular value of a better subset.")
        share = 1.2 * self.c * math.log(2 * math.e * worst) * change + 4 * U
        self.cutoff = bound * (1 + share)
        self.low, high = low * (1 - 1e-9), min(high, max(trace, 2 * low)) * (1 + 1e-9)
        self.envelope = Envelope(self.c, self.a, self.low, high)
        allowed[include] = False
        candidates, j = np.flatnonzero(allowed), len(include)
        # the first of columns that are equal up to sign: two of them are dependent
        ordered = self.columns[np.concatenate([include, candidates])]
        signs = np.sign(np.take_along_axis(ordered, (ordered != 0).argmax(axis=1)[:, None], axis=1))
        first = np.sort(np.unique(ordered * signs + 0.0, axis=0, return_index=True)[1])
        self.open: list[list[tuple[Any, Any, Any]]] = [[] for _ in range(self.k + 1)]
        self.open[j] += [] if closed else [(include, candidates[first[first >= j] - j], None)]
        self.nodes, self.tried, self.margin = 0, 0, math.inf
        least, most = (float(side[0]) for side in self.losses(np.array([header["subset"]])))
        least, self.loss = least * (1 - share), most * (1 + share)
        if not header["loss"] * (1 - 1e-10) <= least <= self.loss <= header["loss"] * (1 + 1e-10):
            raise RefusedError(f"The loss of the subset is from {least:.12g} to {self.loss:.12g}.")

    def take(self) -> Any:
        """The next nodes: the longest-chosen `most` of one length, or all of the least length."""
        full = [some for some in reversed(self.open) if len(some) >= self.most]
        some = next(some for some in full + self.open if some)
        chosen, candidates, notes = zip(*some[-self.most :], strict=True)
        del some[-self.most :]
        self.nodes += len(chosen)
        candidates, real = padded(candidates)
        return SimpleNamespace(chosen=np.array(chosen, np.int64), candidates=candidates, real=real, notes=notes)

    def cut(self, nodes: Any, columns: Any, weights: Any) -> Any:
        """What the hints, columns (B, h) with weights, tell about B nodes."""
        k, (B, j), D = self.k, nodes.chosen.shape, self.columns.shape[1]
        m, a = k - j, self.a
        C, x, heavy = (self.columns[some] for some in (nodes.chosen, nodes.candidates, columns))
        low, interlaced = np.full(B, self.low), np.full(B, -np.inf)
        if j:
            Q = np.linalg.qr(C.mT, mode="complete")[0]
            C, x, heavy = C @ Q, x @ Q, heavy @ Q
            beyond = C * (np.arange(D) > np.arange(j)[:, None])
            stray = np.linalg.norm(beyond, axis=(1, 2)) / np.linalg.norm(C, axis=(1, 2))
            if not (np.all(stray < self.stray / 2) and np.all(defect(Q) < self.defect)):
                raise RefusedError("A QR decomposition is not accurate enough.")
            C -= beyond
            losses = loss_range(*log_eigenvalues(C), self.c)[0] * (1 - 64 * k * U)
            interlaced = losses.sum(axis=1) + m
            others = (losses[:, 1:] - 1).sum(axis=1)  # all but the least eigenvalue of S lose at least as much
            low = np.maximum(np.exp(least_log(self.cutoff * (1 + 64 * k * U) - (k - 1) - others, self.c)), low)
        M = C.mT @ C + (heavy * weights[..., None]).mT @ heavy
        e, V = self._eigh(M)
        K, f = self.envelope.line(spread(e, k), k, self.defect)
        parts = (x @ V) ** 2
        moments, effects = (parts @ K[..., None])[..., 0], (parts @ np.abs(K)[..., None])[..., 0]
        diagonal = 2 * np.log(np.maximum(np.abs(np.diagonal(C[:, :, :j], axis1=1, axis2=2)), 1e-150))
        base = ((C @ V) ** 2 @ K[..., None]).sum(axis=(1, 2)) - f.sum(axis=1) - a * diagonal.sum(axis=1)
        size = k * np.abs(K).max(axis=1) * self.longest
        error = size * (2.1 * D**1.5 + D + 5)  # of the moments
        # of all terms; 700 is the largest |log| of a residual, in `_possible`
        size += np.abs(f).sum(axis=1) + np.abs(base) + a * (np.abs(diagonal).sum(axis=1) + 700 * m)
        scores, Z, rounding = moments, x[:, :, j:], np.zeros((B, 1))
        if m and a:
            nu, F = self._eigh(M[:, j:, j:])
            roots = 1 / np.sqrt(np.maximum(spread(nu, m), 1e-15 * nu[:, :1] + 1e-300))
            Z = (Z @ F) * roots[:, None, :]
            norms = (Z * Z).sum(axis=2)
            # D - j products and a factor: an entry of W is wrong by at most (D - j + 1) U |z| times its root
            rounding = 1.1 * (D + 1) * U * math.sqrt(self.longest) * np.linalg.norm(roots, axis=1)[:, None]
            norms += 2 * rounding * np.sqrt(norms) + rounding**2 + (D + 6) * U * norms
            logs = 2 * np.log(roots[:, :m])
            base, size = base + a * (logs.sum(axis=1) - 2 * m * self.defect), size + a * np.abs(logs).sum(axis=1)
            scores = moments - a * np.log(norms)
        # the coefficients A that make the form (x + CA)'(x + CA) - low (A'A + 1) least; errors raise it
        A = -np.linalg.solve(C @ C.mT - low[:, None, None] * np.eye(j), C @ x.mT).mT
        form, reach = x + A @ C, np.linalg.norm(C, axis=(1, 2))[:, None] * np.linalg.norm(A, axis=2)
        reach += np.linalg.norm(form, axis=2) + np.linalg.norm(x, axis=2)
        fixed = low[:, None] * ((A * A).sum(axis=2) + 1)
        # an entry is wrong by at most e r r', e = 2 (D + j + 4) U, r^2 = reach^2 + fixed; m e r^2 covers m rows
        own = (form * form).sum(axis=2) - fixed + 4 * (m + 8) * (D + j + 4) * U * (reach**2 + fixed)
        real = nodes.real & ~(own <= 0)
        scores = np.where(real, scores, np.inf)
        least = np.sort(np.pad(scores, ((0, 0), (0, m)), constant_values=np.inf), axis=1)[:, :m]
        size += np.abs(np.where(np.isfinite(least), least, 0.0)).sum(axis=1)
        error = U * (error + 16 * (k + 4) * size)
        bound = np.where(np.isfinite(error), base + least.sum(axis=1) - error, -np.inf)
        # a comparison with NaN is False, and must not remove a candidate
        rise = np.maximum(np.where(real, scores, 0.0) - least.max(axis=1, initial=-np.inf)[:, None], 0.0)
        keep = real & ~(bound[:, None] + rise - 16 * U * np.abs(scores) >= self.cutoff)
        return SimpleNamespace(
            bound=np.maximum(bound, interlaced), keep=keep, base=base - error, scores=scores, effects=effects,
            residuals=Z, rounding=rounding[:, 0], form=form, coefficients=A, own=own, low=low,
        )  # fmt: skip

    def _eigh(self, M: Any) -> tuple[Any, Any]:
        """Eigenvalues, descending, and eigenvectors whose orthogonality is checked."""
        e, V = np.linalg.eigh(M)
        if not np.all(defect(V) < self.defect):
            raise RefusedError("Eigenvectors are not accurate enough.")
        return np.maximum(e[:, ::-1], 0.0), V[:, :, ::-1]

    def settle(self, nodes: Any, cuts: Any, kinds: Any, branches: Any, notes: Any) -> None:
        """Close, enumerate or branch these nodes; refuse the proof if one stays open. Notes are for a writer."""
        bounds = [cuts.bound[(kinds != BRANCHED) & (kinds != ENUMERATED)].min(initial=np.inf)]
        j, rows = nodes.chosen.shape[1], np.flatnonzero(kinds == ENUMERATED)
        most = int(cuts.keep[rows].sum(axis=1).max(initial=1))
        if len(rows) and (j == self.k or math.comb(most, self.k - j) > MOST_SUBSETS):
            raise RefusedError(f"{self.k - j} columns of {most} cannot be enumerated.")
        step = max(PIECE // (most * (most + self.columns.shape[1])), 1)
        for first in range(0, len(rows), step):
            for row, members in self._possible(nodes, cuts, rows[first : first + step], most):
                self.tried += len(row)
                subsets = np.concatenate([nodes.chosen[row], members], axis=1)
                bounds.append(self.losses(subsets)[0].min(initial=np.inf))
        least = float(np.min(bounds))  # NaN if one is NaN
        if not least >= self.cutoff:
            raise RefusedError(f"A subset may be below the bound: {least:.12g}, but {self.cutoff:.12g} is needed.")
        self.margin = min(self.margin, least / self.cutoff - 1)
        for i, b, note in zip(np.flatnonzero(kinds == BRANCHED).tolist(), branches.tolist(), notes, strict=True):
            left = nodes.candidates[i, cuts.keep[i] & (nodes.candidates[i] != b)]
            self.open[j].append((nodes.chosen[i], left, note))
            self.open[j + 1].append((np.append(nodes.chosen[i], b), left, note))

    def _possible(self, nodes: Any, cuts: Any, rows: Any, most: int) -> Any:
        """Rows, and missing columns, of the subsets that can be better, in some arrays."""
        D, m, a = self.columns.shape[1], self.k - nodes.chosen.shape[1], self.a
        order = np.argsort(np.where(cuts.keep, cuts.scores, np.inf)[rows], axis=1)[:, :most]
        parts = (cuts.keep, cuts.scores, cuts.own, cuts.residuals, cuts.form, cuts.coefficients, nodes.candidates)
        keep, scores, own, Z, Y, A, columns = (part[rows[:, None], order] for part in parts)
        scores = np.where(keep, scores, np.inf)
        after = np.pad(scores, ((0, 0), (0, m)), constant_values=np.inf)
        rest = np.cumsum([np.zeros_like(scores), *(after[:, i : i + most] for i in range(1, m))], axis=0)
        roots, lengths = np.sqrt(np.maximum(own, 1e-300)), np.maximum(np.linalg.norm(Z, axis=2), 1e-150)
        stray = cuts.rounding[rows, None] / lengths
        # of a cosine: the errors of both columns, of D products, and of two lengths
        error = 2 * stray + stray**2 + (D + 16) * U
        error = np.maximum(error[:, :, None], error[:, None, :])
        cosines = (Z @ Z.mT) / (lengths[:, :, None] * lengths[:, None, :])
        inertia = (Y @ Y.mT - cuts.low[rows, None, None] * (A @ A.mT)) / (roots[:, :, None] * roots[:, None, :])
        able, value = np.triu(~(np.abs(inertia) >= 1 + 16 * U), 1), cuts.base[rows, None] + scores
        row, p = np.nonzero(~(value + rest[m - 1] >= self.cutoff))
        stack, piece = [(row, p[:, None], value[row, p])], max(PIECE // most, 1)
        while stack:
            row, T, value = stack.pop()
            if len(row) > piece:
                stack.append((row[piece:], T[piece:], value[piece:]))
                row, T, value = row[:piece], T[:piece], value[:piece]
            t = T.shape[1]
            if t == m:
                yield rows[row], columns[row[:, None], T]
                continue
            at, r = np.nonzero(able[row[:, None], T].all(axis=1))
            row, T, value = row[at], T[at], value[at] + scores[row[at], r]
            share = remainder(cosines, row, T, r, np.take_along_axis(error[row, r], T, axis=1).max(axis=1))
            value -= a * np.log(np.minimum(share, 1))
            left = ~(value + rest[m - 1 - t][row, r] >= self.cutoff) & ~(remainder(inertia, row, T, r, 32 * U) < 0)
            stack.append((row[left], np.append(T, r[:, None], axis=1)[left], value[left]))

    def losses(self, subsets: Any) -> tuple[Any, Any]:
        """Bounds on the losses of subsets (L, k): below, and above."""
        below, above = loss_range(*log_eigenvalues(self.columns[subsets]), self.c)
        return below.sum(axis=1) * (1 - self.k * U), above.sum(axis=1) * (1 + self.k * U)


def compared(X: Any, unit: Any, exclude: Any) -> tuple[Any, float]:
    """The columns in their unit, in a basis of their span if that has fewer rows, and the relative error of that."""
    (D, P), lengths = X.shape, np.sqrt((X * X).sum(axis=0))
    if unit == "median":
        others = np.delete(lengths, exclude)
        unit = float(np.median(others[others > 0]))
    X = X if unit is None else X / (np.where(lengths > 0, lengths, 1.0) if unit == "each" else unit)
    if D <= P:
        return X, 0.0
    Q = np.linalg.qr(X)[0]
    # products of 64 rows are added, so that a sum of D products has an error of (64 + D / 64) U
    inner: Any = sum(Q[i : i + 64].T @ np.concatenate([Q[i : i + 64], X[i : i + 64]], axis=1) for i in range(0, D, 64))
    beyond = np.linalg.norm(X - Q @ inner[:, P:], axis=0) / np.maximum(np.linalg.norm(X, axis=0), 1e-300)
    return inner[:, P:], 1.1 * (np.linalg.norm(inner[:, :P] - np.eye(P)) + beyond.max() + 4 * P * (65 + D / 64) * U)


def remainder(tables: Any, row: Any, T: Any, r: Any, error: Any) -> Any:
    """Upper bounds on v'Gv, v = (b, -1), for matrices G of columns T and r with a unit diagonal, and good b."""
    G, g = tables[row[:, None, None], T[:, :, None], T[:, None, :]], tables[row[:, None], T, r[:, None]]
    G[:, range(T.shape[1]), range(T.shape[1])] = 1.0
    b = np.linalg.solve(G + 1e-12 * np.eye(T.shape[1]), g[..., None])
    form = (b.mT @ (G @ b))[:, 0, 0] - 2 * (b[..., 0] * g).sum(axis=1) + 1
    return form + (error + 8 * T.shape[1] * U) * (1 + np.abs(b).sum(axis=(1, 2))) ** 2


def padded(rows: Any) -> tuple[Any, Any]:
    """Lists of numbers as the rows of one array, and which entries are real."""
    counts = np.array([len(row) for row in rows])
    real = np.arange(max(int(counts.max()), 1)) < counts[:, None]
    found = np.zeros(real.shape, np.int64)
    found[real] = np.concatenate(rows)
    return found, real


class Checked(NamedTuple):
    """A claim that holds: no subset has a loss below `bound`, and `subset` has this loss."""

    subset: list[int]
    loss: float
    bound: float
    subsets: int  # that the claim is about
    nodes: int
    tried: int  # subsets whose loss was computed
    margin: float  # least distance of a bound from the claimed one, relative, after all rounding
    seconds: float

    def __str__(self) -> str:
        gap = 1 - self.bound / self.loss
        return (
            f"checked: loss {self.loss:.9g}, {'proved optimal' if gap <= 1e-9 else f'within {100 * gap:.3g} %'}\n"
            f"none of {self.subsets:,} subsets has a loss below {self.bound:.12g}\n"
            f"{self.nodes:,} nodes, {self.tried:,} losses, least margin {self.margin:.2g}, {self.seconds:.2g} s"
        )


def check_proof(path: Any, X: Any) -> Checked:
    """Check the proof file at `path` for X (D, P), the matrix that was searched; raises RefusedError if it fails."""
    began, X = time.perf_counter(), np.asarray(X).astype(np.float64)
    with open(path, "rb") as file, np.errstate(all="ignore"):

        def read(kind: str, count: int) -> Any:
            data = file.read(np.dtype(kind).itemsize * count)
            if len(data) != np.dtype(kind).itemsize * count:
                raise RefusedError("The file ends before the proof: it is incomplete.")
            return np.frombuffer(data, kind).astype(np.int64)

        try:
            header = json.loads(file.readline(2**26))
            if header["format"] != FORMAT or header["version"] != VERSION:
                raise RefusedError(f"This is not a proof file of version {VERSION}.")
            if X.ndim != 2 or not np.isfinite(X).all() or header["sha256"] != digest(X):
                raise RefusedError("The data are not those of the proof: their SHA-256 differs.")
            k, unit, lists = header["k"], header["unit"], [header[name] for name in ("subset", "include", "exclude")]
            numbers = [header["loss"], header["bound"], header["a"], 1 if unit in (None, "each", "median") else unit]
            good = all(type(i) is int and 0 <= i < X.shape[1] for some in [[k - 1], *lists] for i in some)
            good = good and all(type(x) in (int, float) and 0 <= x < 1e280 for x in numbers) and k <= X.shape[0]
            subset, include, exclude = map(set, lists)
            good = good and [k, len(include), len(exclude)] == [*map(len, lists)] and type(k) is int
            if not (good and len(subset) == k and include <= subset - exclude == subset and 0.05 <= header["c"] <= 10):
                raise RefusedError("The header has impossible values.")
            tree = Tree(X, header)
            while any(tree.open):
                nodes = tree.take()
                kinds, counts = (read(kind, len(nodes.chosen)) for kind in ("u1", "<u2"))
                ends = np.cumsum(np.minimum(counts, X.shape[1]))
                branches = read(tree.number, int((kinds == BRANCHED).sum()))
                hints = [np.split(read(kind, ends[-1]), ends[:-1]) for kind in (tree.number, "<u2")]
                columns, weights = (padded(some)[0] for some in hints)
                tree.settle(nodes, tree.cut(nodes, columns, weights / WEIGHT), kinds, branches, branches)
            if file.read(len(END) + 1) != END:
                raise RefusedError("The file does not end where the proof does.")
        except (KeyError, IndexError, TypeError, ValueError, RecursionError, np.linalg.LinAlgError) as error:
            raise error if isinstance(error, RefusedError) else RefusedError(f"The file is damaged: {error}") from None
    subsets = math.comb(X.shape[1] - len(include | exclude), k - len(include))
    done = tree.nodes, tree.tried, tree.margin, time.perf_counter() - began
    return Checked(header["subset"], tree.loss, header["bound"], subsets, *done)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{check_proof(sys.argv[1], np.load(sys.argv[2], allow_pickle=False))}\n")
    except (ValueError, OSError, IndexError) as refused:
        sys.exit(f"refused: {refused}")
