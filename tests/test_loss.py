import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import losses, random_rotation

import isopursuit as ip
from isopursuit.loss import penalty

seeds = st.integers(0, 2**32 - 1)
exponents = st.floats(0.1, 4.0)


@given(seeds, st.integers(1, 6), exponents)
def test_the_loss_is_the_papers_formula(seed, D, c):
    X = random_rotation(D, np.random.default_rng(seed)) @ np.diag(np.linspace(0.5, 2.0, D))
    assert ip.isometry_loss(X, c) == pytest.approx(losses(X, c), rel=1e-12)


@given(seeds, st.integers(1, 6), exponents)
def test_the_loss_is_at_least_D_and_equals_D_for_orthonormal_columns(seed, D, c):
    rng = np.random.default_rng(seed)
    assert ip.isometry_loss(rng.normal(size=(D, D)), c) >= D
    assert ip.isometry_loss(random_rotation(D, rng), c) == pytest.approx(D, abs=1e-12)


@given(seeds, st.integers(1, 6), exponents)
def test_a_matrix_and_its_inverse_have_the_same_loss(seed, D, c):
    rng = np.random.default_rng(seed)
    X = random_rotation(D, rng) @ np.diag(np.exp(rng.uniform(-1, 1, D))) @ random_rotation(D, rng)
    assert ip.log_isometry_loss(np.linalg.inv(X), c) == pytest.approx(ip.log_isometry_loss(X, c), rel=1e-9)


@given(seeds, st.integers(2, 6))
def test_rotating_rows_changes_no_loss(seed, D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(D, D - 1))
    assert ip.log_isometry_loss(random_rotation(D, rng) @ X) == pytest.approx(ip.log_isometry_loss(X), rel=1e-9)


def test_no_exponent_overflows_and_comparisons_stay_right():
    scales = [1.0, 0.5, 0.1, 0.01, 1e-6]
    losses = [ip.log_isometry_loss(t * np.eye(3), c=10) for t in scales]
    assert np.isfinite(losses).all()
    assert losses == sorted(losses)
    assert ip.isometry_loss(0.01 * np.eye(3), c=10) == np.inf


def test_dependent_columns_have_infinite_loss():
    X = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0], [0.5, 1.0, 3.0]])
    assert ip.isometry_loss(X) == np.inf
    assert ip.log_isometry_loss(X) == np.inf


def test_a_rectangular_loss_counts_its_own_columns():
    assert ip.isometry_loss(np.eye(5)[:, :2]) == pytest.approx(2.0)


def test_multitask_norm_of_an_orthonormal_inverse_is_D():
    Q = random_rotation(4, np.random.default_rng(0))
    assert ip.multitask_norm(np.linalg.inv(Q)) == pytest.approx(4.0)


def test_in_one_dimension_the_two_losses_are_the_same():
    # the paper's figure 1: basis pursuit's loss after normalization equals the ground truth when D = 1
    for t, c in itertools.product([0.3, 0.9, 1.0, 2.5], [0.5, 1.0, 2.0]):
        loss = ip.isometry_loss([[t]], c)
        assert ip.multitask_norm(1 / ip.symmetric_normalize([[t]], c)) == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("name", ["ROUNDING", "LARGEST_LOG"])
def test_the_kernels_have_the_same_tolerances(name):
    text = (Path(__file__).parents[1] / "src/isopursuit/loss/_penalty.pxd").read_text("utf-8")
    (value,) = re.findall(rf"#define {name} (\S+)", text)
    assert float(value) == getattr(penalty, name)
