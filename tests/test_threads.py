"""BLAS has one thread while the library computes, and as many as before at any other time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import isopursuit as ip
from isopursuit._core.threads import on_one_blas_thread
from isopursuit.errors import InputError

X = np.random.default_rng(0).normal(size=(3, 40)) / np.sqrt(3)


def numbers():
    """Of every BLAS that has threads: other packages may have loaded one without."""
    some = (one for one in threadpool_info() if one["user_api"] == "blas" and one.get("threading_layer") != "disabled")
    return {one["num_threads"] for one in some}


@pytest.fixture(autouse=True)
def three_threads():
    """More than one to begin with, whatever the machine has."""
    with threadpool_limits(limits=3, user_api="blas"):
        if numbers() != {3}:
            pytest.skip(f"this BLAS cannot be given three threads: {threadpool_info()}")
        yield


CALLS = {
    "isometry_pursuit": lambda watch: ip.isometry_pursuit(X, callback=watch),
    "a source": lambda watch: ip.isometry_pursuit(ip.as_source(X), callback=watch),
    "basis_pursuit": lambda watch: ip.basis_pursuit(X, callback=watch),
    "lasso_path": lambda watch: ip.lasso_path(X, penalties=3, callback=watch),
    "greedy_search": lambda watch: ip.greedy_search(X, callback=watch),
    "brute_search": lambda watch: ip.brute_search(X[:, :6], callback=watch),
    "exact_search": lambda watch: ip.exact_search(X, callback=watch),
    "select": lambda watch: ip.select(X, callback=watch),
    "select_pointwise": lambda watch: ip.select_pointwise(X[None], callback=watch),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_inside_every_public_function_blas_has_one_thread_and_outside_as_many_as_before(call):
    seen = set()

    def watch(*_):
        seen.update(numbers())

    call(watch)
    assert seen == {1}
    assert numbers() == {3}


def test_a_refusal_restores_the_threads_too():
    with pytest.raises(InputError):
        ip.isometry_pursuit(np.full((3, 40), np.nan))
    assert numbers() == {3}


def test_calls_from_many_threads_share_one_limit_and_the_last_restores():
    together = Barrier(4)

    @on_one_blas_thread
    def work(rounds):
        for _ in range(rounds):
            on_one_blas_thread(numbers)()
        together.wait()  # all are inside
        inside = numbers()
        together.wait()
        return inside

    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(work, [1, 20, 5, 40])) == [{1}] * 4
    assert numbers() == {3}


def test_a_number_that_someone_else_sets_meanwhile_is_theirs_to_keep():
    @on_one_blas_thread
    def work():
        threadpool_limits(limits=2, user_api="blas")  # never restored: a user's own setting

    work()
    assert numbers() == {2}
