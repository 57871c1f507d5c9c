"""Many problems at once answer as one by one, on threads and in PyTorch, each with its own proof."""

import sys

import numpy as np
import pytest
from backends import marked

import isopursuit as ip
from isopursuit import batched, stacks
from isopursuit.batched import batched_pursuit
from isopursuit.datasets import load_iris, load_wine
from isopursuit.errors import DataTypeError, PackageError, ParameterError, ShapeError


@pytest.fixture(params=marked(["threads", "torch", "torch as on a GPU"]))
def pursue(request, monkeypatch):
    """`batched_pursuit` on an array, or on a tensor with its answers turned back."""
    if request.param == "threads":
        return batched_pursuit
    torch = pytest.importorskip("torch")
    if request.param == "torch as on a GPU":
        from isopursuit.pursuit import stacked

        monkeypatch.setitem(stacked.UNROLLED, "cpu", stacked.UNROLLED["cuda"])

    def solve(X, c=1.0, **options):
        found = batched_pursuit(torch.tensor(X), c, **options)
        assert all(part.dtype == torch.float64 for part in (found.weights, found.primal, found.dual, found.gap))
        numbers = {name: getattr(found, name).numpy() for name in ("weights", "primal", "dual", "gap")}
        return type(found)(**numbers, status=found.status, refused=found.refused)

    return solve


def gaussian(n, D, P, seed=0, spread=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D, P)) / np.sqrt(D) * np.exp(spread * rng.normal(size=(n, 1, P)))


def assert_certified(X, found, c=1.0, tol=1e-8):
    """Both bounds recomputed from the weights and the paper's formulas alone."""
    assert (found.status == "optimal").all()
    for i, x in enumerate(X):
        N, w = ip.symmetric_normalize(x, c), found.weights[i]
        inverse = np.linalg.inv((N * w) @ N.T)
        B = w[:, None] * (N.T @ inverse)
        assert np.abs(N @ B - np.eye(len(N))).max() < 1e-8
        assert ip.multitask_norm(B) == pytest.approx(found.primal[i], rel=1e-9)
        nu = inverse / np.linalg.norm(inverse @ N, axis=0).max()
        assert np.trace(nu) == pytest.approx(found.dual[i], rel=1e-9)
        assert found.dual[i] <= found.primal[i] * (1 + 1e-11)
        assert found.gap[i] == pytest.approx(1 - found.dual[i] / found.primal[i], abs=1e-11)
        assert found.gap[i] <= tol
        np.testing.assert_allclose(np.linalg.norm(B, axis=1), w, atol=1e-4 * w.max())


def assert_as_one_by_one(X, found, c=1.0, **options):
    """The objective, and where the optimum is unique the weights and the support, of `isometry_pursuit`."""
    for i, x in enumerate(X):
        alone = ip.isometry_pursuit(x, c, **options)
        assert found.primal[i] == pytest.approx(alone.objective, rel=1e-8)
        if alone.unique:
            np.testing.assert_allclose(found.weights[i], alone.weights, atol=1e-6 * alone.weights.max())
            assert np.flatnonzero(found.supports[i]).tolist() == alone.support.tolist()


PROBLEMS = {
    "4 × 75": lambda: gaussian(60, 4, 75),
    "4 × 75, lengths that differ": lambda: gaussian(60, 4, 75, spread=0.5),
    "2 × 300": lambda: gaussian(20, 2, 300),
    "8 × 100": lambda: gaussian(20, 8, 100),
    "1 × 5": lambda: gaussian(20, 1, 5),
    "as many columns as rows": lambda: gaussian(20, 3, 3),
    "12 rows": lambda: gaussian(5, 12, 150),
    "Iris": lambda: np.stack([load_iris().replicate(i) for i in range(25)]),
    "Wine": lambda: np.stack([load_wine().replicate(i, D=6) for i in range(25)]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_many_answers_are_those_of_one_by_one(pursue, name):
    X = PROBLEMS[name]()
    found = pursue(X)
    assert_certified(X, found)
    assert_as_one_by_one(X, found)
    assert not found.refused


def degenerate():
    """Duplicates and opposites, columns of one length (all tied), an orthonormal basis among others, zero columns."""
    X = gaussian(10, 4, 20)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    planted = np.concatenate([X, np.broadcast_to(np.eye(4), (10, 4, 4))], axis=2)
    yield np.concatenate([X, -X, X], axis=2)
    yield unit
    yield planted
    yield np.concatenate([X, np.zeros((10, 4, 3))], axis=2)
    yield np.broadcast_to(np.tile(np.eye(4), 3), (3, 4, 12))


def test_degenerate_problems_are_certified_too(pursue):
    for X in degenerate():
        found = pursue(X)
        assert_certified(X, found)
        assert_as_one_by_one(X, found)


def test_a_planted_orthonormal_basis_is_the_support(pursue):
    X = gaussian(30, 4, 60, seed=3)
    X[:, :, [5, 17, 30, 59]] = np.eye(4)
    found = pursue(X)
    assert np.allclose(found.primal, 4.0, rtol=1e-12)
    assert found.supports.sum(axis=1).tolist() == [4] * 30
    assert found.supports[:, [5, 17, 30, 59]].all()


@pytest.mark.parametrize("c", [0.3, 3.0])
@pytest.mark.parametrize("normalization", ["symmetric", "logarithmic", lambda t: np.exp(-np.abs(np.log(t)))])
def test_any_exponent_and_normalization(pursue, c, normalization):
    X = gaussian(8, 3, 40, spread=0.4)
    found = pursue(X, c, normalization=normalization)
    assert_as_one_by_one(X, found, c, normalization=normalization)


@pytest.mark.parametrize("factor", [0.02, 10.0, 50.0])
def test_everything_is_in_the_units_of_the_normalized_matrix_whatever_its_scale(pursue, factor):
    X = factor * gaussian(8, 3, 40)
    assert_as_one_by_one(X, pursue(X))


def test_problems_without_an_answer_are_named_and_the_others_unharmed(pursue):
    X = gaussian(12, 3, 30)
    good = pursue(X[[0, 2, 4, 6, 8, 11]])
    X[1, 2, 5] = np.nan
    X[3, 0, 0] = np.inf
    X[5, 2] = X[5, 0] + X[5, 1]
    X[7] = 0.0
    X[9, 1, 1] = 1e200
    X[10] *= 1e4
    found = pursue(X)
    assert {i: why.partition(":")[0] for i, why in sorted(found.refused.items())} == {
        1: "NonFiniteError",
        3: "NonFiniteError",
        5: "RankError",
        7: "RankError",
        9: "RangeError",
        10: "RangeError",
    }
    assert "rank 2" in found.refused[5]
    bad = sorted(found.refused)
    assert (found.status[bad] == "refused").all()
    assert np.isnan(found.primal[bad]).all()
    assert np.isinf(found.gap[bad]).all()
    assert not found.supports[bad].any()
    kept = np.setdiff1d(np.arange(12), bad)
    np.testing.assert_allclose(found.weights[kept], good.weights, rtol=1e-12, atol=1e-14)
    assert str(found) == "12 problems of 30 columns: 6 optimal, 6 refused; largest gap inf"


def test_ill_conditioned_problems_are_finished_by_the_ordinary_solver(pursue):
    X = gaussian(6, 4, 50)
    X[::2] *= np.geomspace(1.0, 1e-7, 4)[:, None]
    found = pursue(X)
    assert found.status.tolist() == ["optimal"] * 6
    assert (found.gap <= 1e-8).all()
    assert_as_one_by_one(X, found)


def test_most_problems_need_no_other_solver(pursue, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the ordinary solver was called")

    monkeypatch.setattr(batched, "isometry_pursuit", refuse)
    shifted = gaussian(100, 4, 75) + 3 * np.random.default_rng(1).normal(size=(100, 4, 1))
    iris = np.stack([load_iris().replicate(i) for i in range(25)])
    for X in (gaussian(300, 4, 75), shifted, iris, gaussian(20, 10, 80), *degenerate()):
        assert (pursue(X).status == "optimal").all()


def test_a_looser_tolerance_is_kept_as_well(pursue):
    X = gaussian(20, 4, 75)
    found = pursue(X, tol=1e-3)
    assert (found.status == "optimal").all()
    assert (found.gap <= 1e-3).all()
    assert (found.primal >= pursue(X).dual * (1 - 1e-12)).all()


def test_the_order_of_problems_and_their_company_do_not_matter(pursue):
    X = gaussian(40, 4, 60)
    order = np.random.default_rng(1).permutation(40)
    plain, shuffled = pursue(X), pursue(X[order])
    np.testing.assert_allclose(shuffled.weights, plain.weights[order], atol=1e-12)
    np.testing.assert_allclose(pursue(X[:1]).weights[0], plain.weights[0], atol=1e-12)


@pytest.mark.needs("torch")
def test_blocks_of_any_size_give_the_same_answers(monkeypatch):
    torch = pytest.importorskip("torch")
    from isopursuit.pursuit import stacked

    X = gaussian(50, 3, 30)
    threads, tensors = batched_pursuit(X), batched_pursuit(torch.from_numpy(X))
    monkeypatch.setattr(stacks, "BLOCK", 7)
    monkeypatch.setattr(stacked, "CACHE", 100_000)
    np.testing.assert_array_equal(batched_pursuit(X, workers=3).weights, threads.weights)
    np.testing.assert_allclose(batched_pursuit(torch.from_numpy(X)).weights, tensors.weights, atol=1e-12)


def test_the_callers_data_are_not_changed_and_any_real_numbers_will_do(pursue):
    X = np.random.default_rng(0).integers(-3, 4, size=(5, 2, 12))
    for kind in (np.int32, np.float32, np.float64):
        given = X.astype(kind)
        before = given.copy()
        found = pursue(given)
        assert np.array_equal(given, before)
        assert_as_one_by_one(X, found)
    assert_as_one_by_one(X, batched_pursuit(X.tolist()))


@pytest.mark.needs("torch")
def test_an_array_may_be_solved_by_torch_and_comes_back_an_array():
    X = gaussian(10, 3, 30)
    X.flags.writeable = False
    found = batched_pursuit(X, device="cpu:0")
    assert isinstance(found.weights, np.ndarray)
    assert isinstance(found.gap, np.ndarray)
    assert_as_one_by_one(X, found)


@pytest.mark.needs("torch")
def test_a_tensor_that_is_being_trained_is_read_only():
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(gaussian(4, 3, 20)).requires_grad_()
    found = batched_pursuit(X)
    assert not found.weights.requires_grad
    assert found.weights.device == X.device


@pytest.mark.parametrize("kind", marked(["threads", "torch"]))
def test_the_callback_sees_progress_and_can_stop_with_an_honest_gap(kind, monkeypatch):
    X = gaussian(40, 4, 40)
    X[39, 0, 0] = np.nan
    best = batched_pursuit(X).primal
    monkeypatch.setattr(stacks, "BLOCK", 5)
    given = X
    if kind == "torch":
        torch = pytest.importorskip("torch")
        from isopursuit.pursuit import stacked

        monkeypatch.setattr(stacked, "capacity", lambda *_: 5)
        given = torch.from_numpy(X)
    seen = []

    def stop_after_two(progress):
        seen.append(progress)
        return len(seen) == 2

    found = batched_pursuit(given, workers=1, callback=stop_after_two)
    assert [progress.done for progress in seen] == [5, 10]
    assert {progress.total for progress in seen} == {40}
    assert found.status[:10].tolist() == ["optimal"] * 10
    left = np.flatnonzero(found.status == "stopped")
    assert set(left) >= set(range(20, 39))
    assert found.status[39] == "refused"
    assert (np.asarray(found.gap)[left] > 1e-3).all()
    assert (np.asarray(found.dual)[left] <= best[left]).all()
    assert (np.asarray(found.primal)[left] >= best[left] * (1 - 1e-12)).all()


def test_an_error_in_the_callback_reaches_the_caller(pursue):
    def fail(_):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        pursue(gaussian(10, 3, 20), callback=fail)


def test_what_is_no_stack_of_problems_is_refused(pursue):
    X = gaussian(4, 3, 20)
    with pytest.raises(ShapeError, match="isometry_pursuit"):
        pursue(X[0])
    with pytest.raises(ShapeError, match="20 rows and only 3 columns"):
        pursue(X.transpose(0, 2, 1))
    with pytest.raises(ShapeError, match="0 × 3 × 20"):
        pursue(X[:0])
    with pytest.raises(DataTypeError, match="complex"):
        pursue(X + 1j)
    for options in (
        {"tol": 0.0},
        {"workers": 0},
        {"normalization": "best"},
        {"device": "abacus"},
        {"device": "meta"},
        {"c": -1.0},
    ):
        with pytest.raises((ParameterError, PackageError)):  # a device of PyTorch's, where there is none
            pursue(X, **options)
    with pytest.raises(DataTypeError, match="dtype"):
        batched_pursuit([[["a", "b"]]])
    with pytest.raises(ShapeError, match="same shape"):
        batched_pursuit([np.eye(2), np.eye(3)])


@pytest.mark.needs("torch")
def test_a_gpu_that_is_not_there_is_refused_in_plain_words(monkeypatch):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match="device='cuda'"):
            batched_pursuit(gaussian(2, 2, 5), device="cuda")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PackageError, match=r"isopursuit\[torch\]"):
        batched_pursuit(gaussian(2, 2, 5), device="cuda")


@pytest.mark.needs("torch")
def test_a_cuda_tensor_stays_on_its_device():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    X = gaussian(200, 4, 75)
    X[3, 0, 0] = np.nan
    found = batched_pursuit(torch.from_numpy(X).cuda())
    assert found.weights.is_cuda
    assert list(found.refused) == [3]
    kept = np.delete(np.arange(200), 3)
    assert (found.gap.cpu().numpy()[kept] <= 1e-8).all()
    np.testing.assert_allclose(found.primal.cpu().numpy()[kept], batched_pursuit(X).primal[kept], rtol=1e-8)
