"""How each peer is asked for k of the columns of X (rows, P): by its documented call, for diversity alone.

Imports stand inside the functions: a worker imports one library.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LIMIT = 30.0  # seconds for one selection, ours or a peer's
SECOND_STAGE = 5.0  # seconds after which our second stage on what a convex solver left ends, the solver's time included
SMALL_LAMBDA = 1e-3  # of the smallest λ at which nothing is picked
USED = 1e-6  # a column is in a solution's support if its row is longer than this share of the longest


@dataclass(frozen=True)
class Picked:
    """The columns, and what is proved: "optimal", "among N" (columns that a pursuit left), a gap, or "none"."""

    indices: Any
    proof: str = "none"


@dataclass(frozen=True)
class Method:
    """One row of the comparison. `seeds` above 1: the method is random, and its median over so many seeds counts."""

    library: str
    call: str
    pick: Callable[[np.ndarray, int, int], Picked]  # of X, k and a seed
    seeds: int = 1


@dataclass(frozen=True)
class Library:
    """What is imported, from which distributions."""

    module: str
    distributions: tuple[str, ...]
    what: str


LIBRARIES = {
    "isopursuit": Library("isopursuit", ("isopursuit",), "as orthonormal as possible, with proofs"),
    "NumPy": Library("numpy", ("numpy",), "a random draw"),
    "scipy": Library(
        "scipy.linalg.interpolative", ("scipy",), "pivoted QR and interpolative decomposition: large volume"
    ),
    "teneva": Library("teneva", ("teneva",), "maxvol: locally largest volume"),
    "scikit-matter": Library("skmatter.sample_selection", ("skmatter",), "leverage (CUR), farthest points"),
    "pyversity": Library("pyversity", ("pyversity",), "diversify search results"),
    "DPPy": Library("dppy.finite_dpps", ("dppy",), "sample sets in proportion to their squared volume"),
    "langchain-core": Library("langchain_core.vectorstores.utils", ("langchain-core",), "marginal relevance"),
    "apricot": Library("apricot", ("apricot-select",), "facility location: representatives"),
    "scikit-learn": Library("sklearn.linear_model", ("scikit-learn",), "multitask lasso"),
    "skglm": Library("skglm", ("skglm",), "multitask lasso"),
    "CVXPY": Library("cvxpy", ("cvxpy", "scs", "clarabel", "ecos"), "multitask basis pursuit as a cone program"),
}


# ------------------------------------------------------------------------------------------------------- isopursuit


def greedy(X: np.ndarray, k: int, seed: int) -> Picked:
    import isopursuit as ip

    return Picked(ip.greedy_search(X, k=k).indices)


def two_stage(X: np.ndarray, k: int, seed: int) -> Picked:
    import isopursuit as ip

    found = ip.select(X, k, method="two-stage", time_limit=LIMIT)
    return Picked(found.indices, _proof(found.search, None if found.pursuit is None else len(found.pursuit.tied)))


def exchange(X: np.ndarray, k: int, seed: int) -> Picked:
    import isopursuit as ip

    found = ip.exchange_search(X, k=k, time_limit=LIMIT)
    return Picked(found.indices, "optimal" if found.optimal else "none")


def exact(X: np.ndarray, k: int, seed: int) -> Picked:
    import isopursuit as ip

    found = ip.exact_search(X, k=k, time_limit=LIMIT)
    return Picked(found.indices, _proof(found))


def _proof(search: Any, among: int | None = None) -> str:
    if search.status == "optimal":
        return "optimal" if among is None else f"among {among}"
    gap = f"gap {100 * search.gap:.1f} %"
    return gap if among is None else f"{gap} among {among}"


# ------------------------------------------------------------------------------------------------- volume and leverage


def random_draw(X: np.ndarray, k: int, seed: int) -> Picked:
    return Picked(np.random.default_rng(seed).choice(X.shape[1], k, replace=False))


def pivoted_qr(X: np.ndarray, k: int, seed: int) -> Picked:
    from scipy.linalg import qr

    return Picked(qr(X, mode="r", pivoting=True)[1][:k])


def interpolative(X: np.ndarray, k: int, seed: int) -> Picked:
    from scipy.linalg.interpolative import interp_decomp

    return Picked(interp_decomp(X, k, rand=False)[0][:k])


def random_interpolative(X: np.ndarray, k: int, seed: int) -> Picked:
    from scipy.linalg.interpolative import interp_decomp

    return Picked(interp_decomp(X, k, rand=True, rng=np.random.default_rng(seed))[0][:k])


def maxvol(X: np.ndarray, k: int, seed: int) -> Picked:
    import teneva

    return Picked(teneva.maxvol(_leading(X, k).T, e=1.001, k=1000)[0])


def cur(X: np.ndarray, k: int, seed: int) -> Picked:
    from skmatter.sample_selection import CUR

    return Picked(CUR(n_to_select=k).fit(X.T).selected_idx_)


def farthest(X: np.ndarray, k: int, seed: int) -> Picked:
    from skmatter.sample_selection import FPS

    return Picked(FPS(n_to_select=k, initialize="random", random_state=seed).fit(X.T).selected_idx_)


def k_dpp(X: np.ndarray, k: int, seed: int) -> Picked:
    from dppy.finite_dpps import FiniteDPP

    process = FiniteDPP("likelihood", L_gram_factor=X)
    return Picked(process.sample_exact_k_dpp(size=k, random_state=np.random.RandomState(seed)))


# ----------------------------------------------------------------------------------------------- diversify, represent


def pyversity(strategy: str) -> Callable[[np.ndarray, int, int], Picked]:
    def pick(X: np.ndarray, k: int, seed: int) -> Picked:
        from pyversity import diversify

        found = diversify(X.T, np.ones(X.shape[1]), k, strategy=strategy, diversity=1.0)
        return Picked(found.indices)

    return pick


def marginal_relevance(X: np.ndarray, k: int, seed: int) -> Picked:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    return Picked(maximal_marginal_relevance(X.mean(axis=1), X.T, lambda_mult=0.0, k=k))


def facility_location(X: np.ndarray, k: int, seed: int) -> Picked:
    from apricot import FacilityLocationSelection

    return Picked(FacilityLocationSelection(k, metric="cosine", random_state=seed).fit(X.T).ranking)


# ------------------------------------------------------- the paper's convex program, by others; then our second stage


def lasso(library: str) -> Callable[[np.ndarray, int, int], Picked]:
    def solve(X: np.ndarray) -> np.ndarray:
        if library == "skglm":
            from skglm import MultiTaskLasso
        else:
            from sklearn.linear_model import MultiTaskLasso
        D = len(X)
        largest = np.linalg.norm(X, axis=0).max() / D
        model = MultiTaskLasso(SMALL_LAMBDA * largest, fit_intercept=False, tol=1e-6)
        return model.fit(X, np.eye(D)).coef_.T

    return lambda X, k, seed: _second_stage(X, k, solve)


def cone(**options: Any) -> Callable[[np.ndarray, int, int], Picked]:
    def solve(X: np.ndarray) -> np.ndarray:
        import cvxpy as cp

        D, P = X.shape
        B = cp.Variable((P, D))
        cp.Problem(cp.Minimize(cp.sum(cp.norm(B, 2, axis=1))), [np.eye(D) == X @ B]).solve(**options)
        if B.value is None:
            raise ArithmeticError("the solver gave no solution")
        return B.value

    return lambda X, k, seed: _second_stage(X, k, solve)


def _second_stage(X: np.ndarray, k: int, solve: Callable[[np.ndarray], np.ndarray]) -> Picked:
    """As the paper: normalize, solve, keep the columns with weight, and the best subset of those.

    The program has as many constraints as rows and no k: where k is below the rows it is solved in the leading space.
    """
    import isopursuit as ip

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        B = solve(ip.symmetric_normalize(_leading(X, k)))
    lengths = np.linalg.norm(B, axis=1)
    support = np.flatnonzero(lengths > USED * lengths.max())
    if len(support) < k:
        return Picked(support)
    left = max(SECOND_STAGE - (time.perf_counter() - began), 1.0)
    found = ip.exact_search(X[:, support], k=k, time_limit=left)
    return Picked(support[found.indices], _proof(found, len(support)))


def _leading(X: np.ndarray, k: int) -> np.ndarray:
    """The columns' coordinates in the leading k-dimensional row space, for what needs a square answer."""
    if k == len(X):
        return X
    from isopursuit._core.linalg import row_space

    return row_space(X, k)


METHODS = {
    "exact": Method("isopursuit", "exact_search(X, k=k)", exact),
    "exchange": Method("isopursuit", "exchange_search(X, k=k)", exchange),
    "two-stage": Method("isopursuit", 'select(X, k, method="two-stage")', two_stage),
    "greedy (the paper's)": Method("isopursuit", "greedy_search(X, k=k)", greedy),
    "random": Method("NumPy", "choice(P, k, replace=False)", random_draw, 5),
    "pivoted QR": Method("scipy", "qr(X, pivoting=True)", pivoted_qr),
    "ID": Method("scipy", "interp_decomp(X, k, rand=False)", interpolative),
    "ID, randomized": Method("scipy", "interp_decomp(X, k)", random_interpolative, 5),
    "maxvol": Method("teneva", "maxvol(X.T, e=1.001, k=1000)", maxvol),
    "CUR": Method("scikit-matter", "CUR(n_to_select=k)", cur),
    "FPS": Method("scikit-matter", 'FPS(n_to_select=k, initialize="random")', farthest, 5),
    "DPP, greedy": Method("pyversity", 'diversify(strategy="dpp", diversity=1)', pyversity("dpp")),
    "MMR": Method("pyversity", 'diversify(strategy="mmr", diversity=1)', pyversity("mmr")),
    "MSD": Method("pyversity", 'diversify(strategy="msd", diversity=1)', pyversity("msd")),
    "COVER": Method("pyversity", 'diversify(strategy="cover", diversity=1)', pyversity("cover")),
    "SSD": Method("pyversity", 'diversify(strategy="ssd", diversity=1)', pyversity("ssd")),
    "k-DPP": Method("DPPy", "sample_exact_k_dpp(k)", k_dpp, 5),
    "MMR, langchain": Method("langchain-core", "maximal_marginal_relevance(lambda_mult=0)", marginal_relevance),
    "facility location": Method("apricot", 'FacilityLocationSelection(k, metric="cosine")', facility_location),
    "MultiTaskLasso": Method("scikit-learn", "MultiTaskLasso(small λ), second stage", lasso("sklearn")),
    "skglm lasso": Method("skglm", "MultiTaskLasso(small λ), second stage", lasso("skglm")),
    "SCS": Method("CVXPY", "solve(SCS, eps=1e-9), second stage", cone(solver="SCS", eps=1e-9)),
    "Clarabel": Method("CVXPY", "solve(CLARABEL), second stage", cone(solver="CLARABEL")),
    "ECOS": Method("CVXPY", "solve(ECOS), second stage", cone(solver="ECOS")),
}
OURS = tuple(name for name, method in METHODS.items() if method.library == "isopursuit")
