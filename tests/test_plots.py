import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import isopursuit as ip
from isopursuit import show as plots
from isopursuit.data import load_iris, load_wine
from isopursuit.errors import PackageError, ParameterError, ShapeError
from isopursuit.show._style import colour_map, short_heads

HOSTILE = "$\\frac{ <b>&amp; \n\x00"


@pytest.fixture(scope="module")
def wine():
    X = load_wine().matrix(6)
    return X, ip.select(X, labels=[f"wine {i}" for i in range(178)])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def texts(ticks):
    return [tick.get_text() for tick in ticks]


def legend(ax):
    return texts(ax.get_legend().get_texts())


def drawn(ax):
    """Draw, so that whatever cannot be drawn fails here."""
    ax.figure.canvas.draw()
    return ax


def test_gram_after_shows_every_inner_product_by_name(wine):
    _, picked = wine
    ax = drawn(plots.plot_gram(picked))
    np.testing.assert_allclose(ax.images[0].get_array(), picked.matrix.T @ picked.matrix)
    assert texts(ax.get_xticklabels()) == texts(ax.get_yticklabels()) == list(picked.labels)
    assert len(ax.texts) == 36
    assert ax.images[0].norm.vmin == -ax.images[0].norm.vmax  # white is zero


def test_gram_before_marks_the_picked_among_all(wine):
    X, picked = wine
    ax = drawn(plots.plot_gram(X, picked=picked))
    np.testing.assert_allclose(ax.images[0].get_array(), X.T @ X)
    assert ax.get_xticks().tolist() == picked.indices.tolist()


def test_gram_of_very_many_columns_is_a_sample_that_keeps_the_picked():
    X = np.random.default_rng(0).normal(size=(3, 5000))
    picked = ip.select(X, method="greedy")
    ax = drawn(plots.plot_gram(X, picked=picked))
    gram = ax.images[0].get_array()
    assert len(gram) <= 503
    places = ax.get_xticks().astype(int)
    np.testing.assert_allclose(gram[np.ix_(places, places)], picked.matrix.T @ picked.matrix)
    assert f"{len(gram)} of 5000" in ax.get_title()


def test_many_long_names_are_thinned_and_shortened():
    X = np.random.default_rng(1).normal(size=(70, 80))
    labels = [f"a candidate with quite a long name, number {i}" for i in range(80)]
    picked = ip.select(X, method="greedy", labels=labels)
    ax = plots.plot_gram(picked)
    shown = texts(ax.get_yticklabels())
    assert 10 < len(shown) <= 36
    assert max(map(len, shown)) <= 22
    assert len(set(shown)) == len(shown)  # the ends that tell them apart are kept


def test_singular_values_are_those_of_the_picked_columns(wine):
    X, picked = wine
    other = ip.select(X, method="greedy")
    ax = drawn(plots.plot_singular_values([picked, other]))
    ideal, *lines = ax.get_lines()
    assert set(ideal.get_ydata()) == {1.0}
    for one, line in zip((picked, other), lines, strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.linalg.svd(one.matrix, compute_uv=False))
    assert lines[0].get_marker() != lines[1].get_marker()
    assert f"loss {picked.loss:.4g}" in legend(ax)[1]


def test_lengths_count_every_column_and_mark_the_picked(wine):
    X, picked = wine
    lengths = np.linalg.norm(X, axis=0)
    ax = drawn(plots.plot_lengths(X, picked))
    assert sum(bar.get_height() for bar in ax.patches) == 178
    np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), lengths[picked.indices])


def test_lengths_of_equal_and_zero_columns_can_be_drawn():
    X = np.column_stack([np.eye(3), np.zeros(3)])
    ax = drawn(plots.plot_lengths(X, ip.select(X)))
    assert "1 of length 0 not shown" in legend(ax)[0]


def test_fewer_columns_than_rows_are_measured_where_they_were_compared(wine):
    X, _ = wine
    picked = ip.select(X, k=2)
    ax = plots.plot_lengths(X, picked)
    np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), [choice.length for choice in picked.choices])


def test_another_matrix_is_refused(wine):
    X, picked = wine
    for other in (X[:, :20], X + 1.0, load_iris().matrix()):
        with pytest.raises(ShapeError, match="not the matrix"):
            plots.plot_lengths(other, picked)


def test_progress_shows_incumbent_above_bound():
    states = [ip.SearchProgress(0.1 * i, 9.0 - 0.1 * i, 6.0 + 0.2 * i, 0.05, 10 * i, 3) for i in range(6)]
    best, bound = drawn(plots.plot_progress(states)).get_lines()
    assert best.get_ydata().tolist() == [state.incumbent for state in states]
    assert bound.get_ydata().tolist() == [state.lower_bound for state in states]
    assert best.get_linestyle() != bound.get_linestyle()
    for few in (states[:1], [], [ip.SearchProgress(0.1, np.inf, -np.inf, np.inf, 0, 1)]):
        drawn(plots.plot_progress(few))


def test_vectors_are_drawn_where_they_are():
    X = np.array([[1.0, 0.1, 0.6, 3.0], [0.0, 1.0, 0.6, 2.0]])
    ax = drawn(plots.plot_vectors(X, ip.select(X, labels=["north", "east", "both", "far"])))
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert np.ravel(lines["east"].get_data()).tolist() == [0.1, 1.0]
    np.testing.assert_array_equal(lines["all 4 columns"].get_data(), X)
    with pytest.raises(ParameterError, match="k = 2"):
        plots.plot_vectors(np.eye(3), ip.select(np.eye(3)))


def test_a_label_is_never_mathematics_nor_breaks_a_line():
    X = np.array([[1.0, 0.1, 0.6], [0.0, 1.0, 0.6]])
    picked = ip.select(X, labels=[HOSTILE, "_$x$", "both"])
    assert " _$x$" in legend(plots.plot_vectors(X, picked))
    for ax in (plots.plot_gram(picked), plots.plot_gram(X, picked=picked), plots.plot_vectors(X, picked)):
        drawn(ax)
    assert not any("\n" in text or "\x00" in text for text in texts(plots.plot_gram(picked).get_xticklabels()))


def test_every_picture_draws_where_it_is_told(wine):
    X, picked = wine
    draws = [
        lambda ax: plots.plot_gram(picked, ax),
        lambda ax: plots.plot_gram(X, ax, picked=picked),
        lambda ax: plots.plot_singular_values(picked, ax),
        lambda ax: plots.plot_lengths(X, picked, ax),
    ]
    for draw in draws:
        ax = Figure().subplots()  # no pyplot: fit for servers
        assert draw(ax) is ax
        assert ax.get_title()
    assert plt.get_fignums() == []


def test_no_colour_of_a_value_vanishes_on_light_or_on_dark_paper():
    for cyclic in (False, True):
        rgb = colour_map(cyclic=cyclic)(np.linspace(0, 1, 64))[:, :3]
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        light = linear @ [0.2126, 0.7152, 0.0722]  # the relative luminance of WCAG
        for paper in (0.98, 0.009):  # of the report's two papers
            contrast = (np.maximum(light, paper) + 0.05) / (np.minimum(light, paper) + 0.05)
            assert contrast.min() > 1.2


def test_a_selection_for_many_points_shows_its_mean_inner_products():
    matrices = np.random.default_rng(0).normal(size=(40, 2, 9))
    picked = ip.select(matrices)
    ax = drawn(plots.plot_gram(picked))
    mean = np.mean([m.T @ m for m in matrices[:, :, picked.indices]], axis=0)
    np.testing.assert_allclose(ax.images[0].get_array(), mean)
    ax = drawn(plots.plot_singular_values(picked))
    assert "ideal 80" in " ".join(legend(ax))


def test_labels_are_shortened_only_as_far_as_they_stay_different():
    first, last = "ω (ACE:CH3–ACE:C–ALA:N–ALA:CA)", "ω (ALA:CA–ALA:C–NME:N–NME:CH3)"
    twin = "ω (ALA2:CA–ALA2:C–ALA3:N–ALA3:CA)"
    assert short_heads([first, last, "φ (ACE:C–ALA:N)"]) == ["ω (CH3–C–N–CA)", "ω (CA–C–N–CH3)", "φ"]
    assert short_heads([first, first]) == ["ω", "ω"]
    assert len(set(short_heads([twin, twin.replace("2", "5"), last]))) == 3
    assert short_heads(["C0–C1–O2–H3 torsion", "first arc", "", 3]) == ["C0–C1–O2–H3", "first arc", "", "3"]


def test_nothing_is_not_drawn():
    with pytest.raises(ParameterError, match="at least one"):
        plots.plot_singular_values([])
    assert not plt.get_fignums()


def test_without_matplotlib_a_picture_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(PackageError, match=r"Install isopursuit\[plot\], or matplotlib itself"):
        plots.plot_progress([])
