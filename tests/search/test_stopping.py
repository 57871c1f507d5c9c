"""Every kernel that can run for long returns soon after its flag is set or its deadline has passed."""

import ast
import inspect
import time
from pathlib import Path

import numpy as np
import pytest

import isopursuit as ip
from isopursuit._core.threads import on_one_blas_thread
from isopursuit.pursuit import _sweep
from isopursuit.search._joint import CliqueSearch, JointKernel
from isopursuit.search._swap import SwapKernel
from isopursuit.search.proof._tree import OpenNode
from isopursuit.search.proof.tree import NO_LIMIT, tree_kernel

PACKAGE = Path(inspect.getfile(ip)).parent
PROMPT = 0.5  # seconds on a loaded machine; each call of this page takes many seconds to its end
PAST = 0.0  # as a time of perf_counter

# Entries that do one piece of work whose size the caller chooses: one subset, one block of columns or of problems.
PIECES = {
    "search/_swap.log_loss_of", "search/_swap.SwapKernel.loss", "search/_swap.SwapKernel.skip",
    "search/_joint.JointKernel.skip",
    "search/_joint.JointKernel.loss", "search/_joint.JointKernel.prepare", "search/_joint.JointKernel.total_limit",
    "search/_joint.JointKernel.least_loss", "search/_joint.table_of_h", "search/_joint.CliqueSearch.set_pairs",
    "sources/_screen.measure", "pursuit/_program.evaluate", "pursuit/_program.column_keys",
    "pursuit/_program.largest_slope", "pursuit/_program.misfit", "pursuit/_sweep.steps_within",
}  # fmt: skip


def entries():
    """Every function and method of the compiled modules, as "folder/_module.Class.method"."""
    for stub in sorted(PACKAGE.rglob("_*.pyi")):
        module = str(stub.relative_to(PACKAGE).with_suffix("")).replace("\\", "/")
        for node in ast.parse(stub.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                yield f"{module}.{node.name}"
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                called = isinstance(method, ast.FunctionDef) and not method.decorator_list  # a property does no work
                if called and method.name not in ("__init__", "stop"):
                    yield f"{module}.{node.name}.{method.name}"


def gaussian(*shape):
    return np.random.default_rng(0).normal(size=shape) / np.sqrt(shape[-1])


def numbers(count):
    return np.arange(count, dtype=np.int32)


def swaps(method):
    kernel = SwapKernel(gaussian(100_000, 24), 1.0, PAST)
    kernel.prepare(numbers(24))
    assert kernel.late
    if method == "prepare":
        return lambda: kernel.prepare(numbers(24))
    if method == "add":
        return lambda: kernel.add(numbers(23), np.inf)
    return lambda: getattr(kernel, method)(numbers(24), 0, 9.0)


def points(method):
    kernel = JointKernel(gaussian(3000, 200, 6), 1.0, False, 0, PAST)
    if method == "add":
        return lambda: kernel.add(numbers(5), np.inf)
    return lambda: getattr(kernel, method)(numbers(6), 0, np.inf)


def node(method):
    kernel = tree_kernel(gaussian(3000, 48), 48, 1.0, 200.0)
    kernel.stop()
    start = OpenNode(48.0, numbers(0), numbers(3000), np.full(3000, 48 / 3000, np.float32))
    if method == "relax":
        return lambda: kernel.relax(start, 200, 0.0)
    return lambda: kernel.explore([start], 200.0, np.full(49, NO_LIMIT), np.zeros(49, np.int8), 0, NO_LIMIT, NO_LIMIT)


def cliques(method):
    pairs = np.ascontiguousarray(np.argwhere(np.tri(300, k=-1)), dtype=np.int32)
    ranks = np.full((300, 300), np.iinfo(np.int32).max, np.int32)
    ranks[pairs[:, 0], pairs[:, 1]] = ranks[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    kernel = JointKernel(gaussian(300, 400, 4), 1.0, False, 0, False)
    kernel.prepare(numbers(4))
    search = CliqueSearch(kernel, numbers(0), 4)
    search.set_pairs(numbers(300), pairs, ranks, 300, 0.0)
    search.stop = True
    if method == "totals":
        return lambda: [search.totals(numbers(1) + a, numbers(300), np.inf) for a in range(300)]
    return lambda: search.run(0, len(pairs), 20.0)


def pursuit():
    x = gaussian(1, 3000, 100)
    return lambda: on_one_blas_thread(_sweep.solve)(x, None, 0.0, np.ones(3000), 1e-12, 300, lambda _: True)


SWAPS = ("prepare", "replace", "below", "add")
CALLS = {
    **{f"search/_swap.SwapKernel.{name}": lambda name=name: swaps(name) for name in SWAPS},
    **{f"search/_joint.JointKernel.{name}": lambda name=name: points(name) for name in ("replace", "below", "add")},
    "search/proof/_tree.TreeKernel.explore": lambda: node("explore"),
    "search/proof/_tree.TreeKernel.relax": lambda: node("relax"),
    "search/_joint.CliqueSearch.totals": lambda: cliques("totals"),
    "search/_joint.CliqueSearch.run": lambda: cliques("run"),
    "pursuit/_sweep.solve": pursuit,
}


def test_every_kernel_either_can_be_stopped_or_does_one_piece_of_work():
    assert sorted(entries()) == sorted([*CALLS, *PIECES])


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_whose_flag_is_set_before_the_call_returns_at_once(name):
    call = CALLS[name]()
    began = time.perf_counter()
    call()
    assert time.perf_counter() - began < PROMPT


def test_a_pursuit_is_watched_between_two_steps_of_its_interior_point_too():
    calls, rounds = [], 6
    on_one_blas_thread(_sweep.solve)(gaussian(1, 1000, 40), None, 0.0, np.ones(1000), 1e-12, rounds, calls.append)
    assert len(calls) > rounds
