"""How each peer is asked for k of the columns of Z (k, P): by its documented call, for diversity alone.

Imports stand inside the functions: a worker imports one library.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LIMIT = 10.0  # seconds a peer may take for one selection
ANYTIME = 5.0  # seconds for searches that stop when told to and keep the best so far
PATIENT = 60.0  # the exact search where the issue asks for a proof: k ≤ 10
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
    pick: Callable[[np.ndarray, int], Picked]
    seeds: int = 1


@dataclass(frozen=True)
class Library:
    """What is imported, from which distributions."""

    module: str
    distributions: tuple[str, ...]
    what: str


LIBRARIES = {
    "isopursuit": Library("isopursuit", ("isopursuit",), "as orthonormal as possible, with proofs"),
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


def greedy(Z: np.ndarray, seed: int) -> Picked:
    import isopursuit as ip

    return Picked(ip.greedy_search(Z).indices)


def two_stage(Z: np.ndarray, seed: int) -> Picked:
    import isopursuit as ip

    found = ip.select(Z, time_limit=ANYTIME)
    return Picked(found.indices, _proof(found.search, len(found.pursuit.tied)))


def exchange(Z: np.ndarray, seed: int) -> Picked:
    import isopursuit as ip

    found = ip.exchange_search(Z, time_limit=ANYTIME)
    return Picked(found.indices, "optimal" if found.optimal else "none")


def exact(Z: np.ndarray, seed: int) -> Picked:
    import isopursuit as ip

    found = ip.exact_search(Z, time_limit=PATIENT if len(Z) <= 10 else ANYTIME)
    return Picked(found.indices, _proof(found))


def _proof(search: Any, among: int | None = None) -> str:
    if search.status == "optimal":
        return "optimal" if among is None else f"among {among}"
    gap = f"gap {100 * search.gap:.1f} %"
    return gap if among is None else f"{gap} among {among}"


# ------------------------------------------------------------------------------------------------- volume and leverage


def pivoted_qr(Z: np.ndarray, seed: int) -> Picked:
    from scipy.linalg import qr

    return Picked(qr(Z, mode="r", pivoting=True)[1][: len(Z)])


def interpolative(Z: np.ndarray, seed: int) -> Picked:
    from scipy.linalg.interpolative import interp_decomp

    return Picked(interp_decomp(Z, len(Z), rand=False)[0][: len(Z)])


def random_interpolative(Z: np.ndarray, seed: int) -> Picked:
    from scipy.linalg.interpolative import interp_decomp

    return Picked(interp_decomp(Z, len(Z), rand=True, rng=np.random.default_rng(seed))[0][: len(Z)])


def maxvol(Z: np.ndarray, seed: int) -> Picked:
    import teneva

    return Picked(teneva.maxvol(Z.T, e=1.001, k=1000)[0])


def cur(Z: np.ndarray, seed: int) -> Picked:
    from skmatter.sample_selection import CUR

    return Picked(CUR(n_to_select=len(Z)).fit(Z.T).selected_idx_)


def farthest(Z: np.ndarray, seed: int) -> Picked:
    from skmatter.sample_selection import FPS

    return Picked(FPS(n_to_select=len(Z), initialize="random", random_state=seed).fit(Z.T).selected_idx_)


def k_dpp(Z: np.ndarray, seed: int) -> Picked:
    from dppy.finite_dpps import FiniteDPP

    process = FiniteDPP("likelihood", L_gram_factor=Z)
    return Picked(process.sample_exact_k_dpp(size=len(Z), random_state=np.random.RandomState(seed)))


# ----------------------------------------------------------------------------------------------- diversify, represent


def pyversity(strategy: str) -> Callable[[np.ndarray, int], Picked]:
    def pick(Z: np.ndarray, seed: int) -> Picked:
        from pyversity import diversify

        found = diversify(Z.T, np.ones(Z.shape[1]), len(Z), strategy=strategy, diversity=1.0)
        return Picked(found.indices)

    return pick


def marginal_relevance(Z: np.ndarray, seed: int) -> Picked:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    return Picked(maximal_marginal_relevance(Z.mean(axis=1), Z.T, lambda_mult=0.0, k=len(Z)))


def facility_location(Z: np.ndarray, seed: int) -> Picked:
    from apricot import FacilityLocationSelection

    return Picked(FacilityLocationSelection(len(Z), metric="cosine", random_state=seed).fit(Z.T).ranking)


# ------------------------------------------------------- the paper's convex program, by others; then our second stage


def lasso(library: str) -> Callable[[np.ndarray, int], Picked]:
    def solve(X: np.ndarray) -> np.ndarray:
        if library == "skglm":
            from skglm import MultiTaskLasso
        else:
            from sklearn.linear_model import MultiTaskLasso
        D = len(X)
        largest = np.linalg.norm(X, axis=0).max() / D
        model = MultiTaskLasso(SMALL_LAMBDA * largest, fit_intercept=False, tol=1e-6)
        return model.fit(X, np.eye(D)).coef_.T

    return lambda Z, seed: _second_stage(Z, solve)


def cone(**options: Any) -> Callable[[np.ndarray, int], Picked]:
    def solve(X: np.ndarray) -> np.ndarray:
        import cvxpy as cp

        D, P = X.shape
        B = cp.Variable((P, D))
        cp.Problem(cp.Minimize(cp.sum(cp.norm(B, 2, axis=1))), [np.eye(D) == X @ B]).solve(**options)
        if B.value is None:
            raise ArithmeticError("the solver gave no solution")
        return B.value

    return lambda Z, seed: _second_stage(Z, solve)


def _second_stage(Z: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]) -> Picked:
    """As the paper: normalize, solve, keep the columns with weight, and the best subset of those."""
    import isopursuit as ip

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        B = solve(ip.symmetric_normalize(Z))
    lengths = np.linalg.norm(B, axis=1)
    support = np.flatnonzero(lengths > USED * lengths.max())
    if len(support) < len(Z):
        return Picked(support)
    left = max(ANYTIME - (time.perf_counter() - began), 1.0)
    found = ip.exact_search(Z[:, support], time_limit=left)
    return Picked(support[found.indices], _proof(found, len(support)))


METHODS = {
    "exact": Method("isopursuit", "exact_search(Z)", exact),
    "exchange": Method("isopursuit", "exchange_search(Z)", exchange),
    "two-stage": Method("isopursuit", "select(Z)", two_stage),
    "greedy (the paper's)": Method("isopursuit", "greedy_search(Z)", greedy),
    "pivoted QR": Method("scipy", "qr(Z, pivoting=True)", pivoted_qr),
    "ID": Method("scipy", "interp_decomp(Z, k, rand=False)", interpolative),
    "ID, randomized": Method("scipy", "interp_decomp(Z, k)", random_interpolative, 5),
    "maxvol": Method("teneva", "maxvol(Z.T, e=1.001, k=1000)", maxvol),
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
