"""Every kernel that can run for long returns soon after its flag is set or its deadline has passed."""

import ast
import inspect
import time
from pathlib import Path

import numpy as np
import pytest
from fuzz.families import short_and_long

import isopursuit as ip
from isopursuit.clock import Clock
from isopursuit.pursuit import _sweep
from isopursuit.search._joint import JointKernel
from isopursuit.search._swap import SwapKernel, best_column
from isopursuit.search.inputs import as_array_pool
from isopursuit.search.proof import joint
from isopursuit.search.proof._cliques import CliqueSearch
from isopursuit.search.proof._tree import OpenNode
from isopursuit.search.proof.tree import NO_LIMIT, tree_kernel
from isopursuit.threads import on_one_blas_thread

PACKAGE = Path(inspect.getfile(ip)).parent
PROMPT = 0.5  # seconds on a loaded machine; each call of this page takes many seconds to its end
PAST = 0.0  # as a time of perf_counter

# Entries that do one piece of work whose size the caller chooses: one subset, one block of columns or of problems.
PIECES = {
    "search/_swap.log_loss_of", "search/_swap.SwapKernel.loss",
    "search/_joint.JointKernel.loss", "search/_joint.JointKernel.linearize", "search/_joint.JointKernel.set_floors",
    "search/_joint.JointKernel.bounds", "search/proof/_cliques.JointProblem.among",
    "search/proof/_cliques.JointProblem.set_pairs", "sources/_screen.measure", "pursuit/_products.moments",
    "pursuit/_products.forms", "pursuit/_program.start", "pursuit/_program.evaluate", "pursuit/_program.measure",
    "pursuit/_program.column_keys", "pursuit/_program.certify", "pursuit/_program.judge_many",
    "pursuit/_program.largest_slope", "pursuit/_sweep.solve_many", "pursuit/_sweep.steps_within",
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
    kernel.linearize(numbers(24), 9.0)
    assert kernel.late
    if method == "linearize":
        return lambda: kernel.linearize(numbers(24), 9.0)
    if method == "add":
        return lambda: kernel.add(numbers(23), np.inf, -1)
    return lambda: getattr(kernel, method)(numbers(24), 0, 9.0, 9.0)


def points(method):
    kernel = JointKernel(gaussian(200, 3000, 6), 1.0, False, 0, False, PAST)
    if method == "add":
        return lambda: kernel.add(numbers(5), np.inf, -1)
    return lambda: getattr(kernel, method)(numbers(6), 0, np.inf, np.inf)


def node(method):
    kernel = tree_kernel(gaussian(3000, 48), 48, 1.0, 200.0)
    kernel.stop()
    start = OpenNode(48.0, numbers(0), numbers(3000), np.full(3000, 48 / 3000, np.float32))
    if method == "relax":
        return lambda: kernel.relax(start, 200, 0.0)
    return lambda: kernel.explore(start, np.full(49, NO_LIMIT), np.zeros(49, np.int8), 0, NO_LIMIT, NO_LIMIT)


def cliques(method):
    pool = as_array_pool(gaussian(400, 4, 300), 1.0)
    incumbent = ip.search.incumbent.Incumbent(pool.ideal)
    incumbent.offer(np.arange(4), 20.0, "")
    search = joint._Search(pool, incumbent, Clock.of(None), 1)
    search.shares = joint.Shares.of(pool.aggregate, np.full(400, 14.0))
    problem = search._problem(np.arange(400))
    pairs = np.ascontiguousarray(np.argwhere(np.tri(300, k=-1)), dtype=np.int32)
    ranks = np.full((300, 300), np.iinfo(np.int32).max, np.int32)
    ranks[pairs[:, 0], pairs[:, 1]] = ranks[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    problem.set_pairs(pairs, ranks, np.zeros((len(pairs), 400), np.float32))
    problem.stop = True
    if method == "pair_totals":
        return lambda: [problem.pair_totals(a, np.inf) for a in range(300)]
    if method == "fill":
        return lambda: problem.fill(0, len(pairs))
    run = CliqueSearch(problem, search.kernel(), numbers(0), numbers(300), numbers(400), 300, PAST)
    return lambda: run.run(0, len(pairs), 20.0)


def pursuit():
    x = gaussian(1, 3000, 100)
    return lambda: on_one_blas_thread(_sweep.solve)(x, None, 0.0, np.ones(3000), 1e-12, 300, lambda _: True)


def addition():
    columns = gaussian(100_000, 24)
    return lambda: best_column(columns, numbers(23), 1.0, deadline=PAST)


SWAPS = ("linearize", "replace", "below", "add")
CALLS = {
    **{f"search/_swap.SwapKernel.{name}": lambda name=name: swaps(name) for name in SWAPS},
    "search/_swap.best_column": addition,
    **{f"search/_joint.JointKernel.{name}": lambda name=name: points(name) for name in ("replace", "below", "add")},
    "search/proof/_tree.TreeKernel.explore": lambda: node("explore"),
    "search/proof/_tree.TreeKernel.relax": lambda: node("relax"),
    "search/proof/_cliques.JointProblem.pair_totals": lambda: cliques("pair_totals"),
    "search/proof/_cliques.JointProblem.fill": lambda: cliques("fill"),
    "search/proof/_cliques.CliqueSearch.run": lambda: cliques("run"),
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


SLOW = short_and_long(np.random.default_rng(0), 5, 2005)  # its dives take minutes


def searched(**options):
    began = time.perf_counter()
    found = ip.exact_search(SLOW, **options)
    assert time.perf_counter() - began < 10
    assert found.lower_bound <= found.loss
    assert found.loss == pytest.approx(ip.isometry_loss(SLOW[:, :5]), rel=1e-9)
    return found


def test_a_time_limit_ends_dives():
    assert searched(time_limit=1).status == "time"


def test_a_callback_ends_dives():
    assert searched(callback=lambda now: now.seconds > 1).status == "interrupted"


def test_ctrl_c_ends_dives():
    def press(now):
        if now.seconds > 1:
            raise KeyboardInterrupt

    assert searched(callback=press).status == "interrupted"
