"""Pictures of manifolds, their coordinates, and torsions on molecules."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from manifolds import clifford_torus

import isopursuit as ip
from isopursuit import show as plots
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.manifold import tangent_spaces

HOSTILE = "$\\frac{ <b>&amp; \n\x00"


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


@pytest.fixture(scope="module")
def torus():
    manifold = clifford_torus(800)
    spaces = tangent_spaces(manifold.points, range(40), D=2, neighbours=40)
    return manifold, spaces


def test_the_manifold_is_shown_by_its_principal_components(torus):
    manifold, _ = torus
    values = manifold.dictionary.value("first arc")
    ax = drawn(plots.plot_manifold(manifold.points, values, label=HOSTILE))
    shown = ax.collections[0].get_offsets()
    centred = manifold.points - manifold.points.mean(axis=0)
    s = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose((np.asarray(shown) ** 2).sum(axis=0), s[:2] ** 2)
    np.testing.assert_allclose(ax.collections[0].get_array(), values)
    share = f"{(s[:2] ** 2).sum() / (s**2).sum():.0%}"
    assert f"2 components, {share}" in ax.get_title()
    three = drawn(plots.plot_manifold(manifold.points, values, plt.figure().add_subplot(projection="3d")))
    assert "3 components" in three.get_title()
    with pytest.raises(ShapeError, match="800 points"):
        plots.plot_manifold(manifold.points, values[:5])


def test_angles_a_turn_apart_have_the_same_colour(torus):
    manifold, _ = torus
    values = manifold.dictionary.value("first arc")
    first, second = (plots.plot_manifold(manifold.points, v, cyclic=True) for v in (values, values + 2 * np.pi))
    np.testing.assert_allclose(first.collections[0].get_array(), second.collections[0].get_array(), atol=1e-12)
    norm, colours = first.collections[0].norm, first.collections[0].cmap
    assert (norm.vmin, norm.vmax) == (-np.pi, np.pi)
    np.testing.assert_allclose(colours(0.0), colours(1.0), atol=0.02)


def test_the_spectra_show_where_the_dimension_is(torus):
    _, spaces = torus
    ax = drawn(plots.plot_spectra(spaces))
    assert "D = 2" in legend(ax)
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    np.testing.assert_allclose(mean.get_ydata(), spaces.shares.mean(axis=0))


def test_dimensions_are_losses_with_their_range_over_redraws_and_random_functions(torus):
    manifold, _ = torus
    scan = ip.find_coordinates(manifold.points, [1, 2, 3], dictionary=manifold.dictionary, frames=30).scan
    ax = drawn(plots.plot_dimension(scan))
    dots = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    assert [line.get_xdata()[0] for line in dots] == [1, 2, 3]
    np.testing.assert_allclose([line.get_ydata()[0] for line in dots], np.exp([row.log_loss for row in scan.rows]))
    assert "D = 2: recommended" in legend(ax)
    assert "best of random functions" in legend(ax)


BACKBONE = ["CH3", "C", "N", "CA", "C", "N"]
CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
ZIGZAG = np.array([[1.2 * i, 0.7 * (i % 2), 0.1 * i * (i % 3)] for i in range(6)])


@pytest.mark.parametrize("bonds", [CHAIN, []])
def test_torsions_are_marked_on_the_molecule_with_or_without_bonds(bonds):
    labels = ["φ (ACE:C–ALA:N–ALA:CA–ALA:C)", "ψ (ALA:N–ALA:CA–ALA:C–NME:N)"]
    rows = [[1, 2, 3, 4], [2, 3, 4, 5]]
    ax = drawn(plots.plot_torsions(BACKBONE, rows, bonds=bonds, positions=ZIGZAG, labels=labels))
    assert sorted(texts(ax.texts)) == sorted([*BACKBONE, "φ", "ψ"])
    assert legend(ax) == labels
    places = {i: text.get_position() for i, text in enumerate(text for text in ax.texts if text.get_text() in BACKBONE)}
    assert len(ax.lines) == len(bonds) + 6
    axes = [line for line in ax.lines if line.get_linewidth() > 5]
    for (i, j), line in zip([(2, 3), (3, 4)], axes, strict=True):
        middle = (np.array(places[i]) + places[j]) / 2
        np.testing.assert_allclose(line.get_xydata().mean(axis=0), middle, atol=0.2)
    assert axes[0].get_color() != axes[1].get_color()


def test_distances_and_angles_are_thin_lines():
    ax = drawn(
        plots.plot_torsions(BACKBONE, [[0, 5], [1, 2, 3]], bonds=CHAIN, positions=ZIGZAG, labels=["far", "bend"])
    )
    assert legend(ax) == ["1: far", "2: bend"]
    assert [line.get_linewidth() for line in ax.lines] == [1.2] * 5 + [1.5] * 3


def test_a_large_molecule_names_only_the_atoms_of_its_torsions():
    positions = np.random.default_rng(0).normal(size=(200, 3))
    ax = drawn(plots.plot_torsions([f"a{i}" for i in range(200)], [[5, 6, 7, 8]], positions=positions))
    assert texts(ax.texts) == ["1", "a5", "a6", "a7", "a8"]


def test_torsions_of_other_atoms_are_refused():
    with pytest.raises(ParameterError, match="the molecule has 6"):
        plots.plot_torsions(BACKBONE, [[0, 1, 2, 6]], positions=ZIGZAG)
    with pytest.raises(ShapeError, match=r"positions must be \(6, 3\)"):
        plots.plot_torsions(BACKBONE, [[0, 1, 2, 3]], positions=ZIGZAG[:5])


def test_coordinates_span_the_plane(torus):
    manifold, _ = torus
    x, y = (manifold.dictionary.value(label) for label in manifold.truth)
    ax = drawn(plots.plot_coordinates(x, y, labels=manifold.truth, colours=x + y))
    np.testing.assert_allclose(ax.collections[0].get_offsets(), np.column_stack([x, y]), atol=1e-12)
    assert ax.get_xlabel() == "first arc"
    assert ax.get_aspect() == 1.0
    with pytest.raises(ShapeError, match="one length"):
        plots.plot_coordinates(x, y[:3])


def test_two_torsions_make_a_ramachandran_plot_of_a_whole_turn_in_degrees():
    labels = ("φ (C–N–CA–C)", "ψ")
    few = drawn(plots.plot_coordinates([0.1, np.pi + 0.1], [3 * np.pi / 2, 0.0], labels=labels, cyclic=True))
    np.testing.assert_allclose(few.collections[0].get_offsets(), [[5.73, -90], [-174.27, 0]], atol=0.01)
    assert (few.get_xlabel(), few.get_ylabel()) == labels
    assert (few.get_xlim(), few.get_ylim()) == ((-180, 180), (-180, 180))
    assert texts(few.get_xticklabels()) == ["−180°", "−90°", "0°", "90°", "180°"]
    angles = np.random.default_rng(0).uniform(-9, 9, (2, 5000))
    for cyclic in (False, True):
        many = drawn(plots.plot_coordinates(*angles, labels=(HOSTILE, HOSTILE), cyclic=cyclic))
        assert many.collections[0].get_array().sum() == 5000


def test_losses_rise_and_the_worst_points_have_their_numbers():
    losses = np.array([2.5, 80.0, 2.0, 9.0, np.inf, 1e4])
    unsure = [False, True, False, False, False, True]
    numbers = [10, 20, 30, 40, 50, 60]
    ax = drawn(plots.plot_point_losses(losses, points=numbers, ideal=2, undetermined=unsure))
    above = "above 4450: 2"  # a hundred times the median
    assert legend(ax) == ["determined (4)", "tangent space not determined (2)", above, "ideal: 2"]
    shown = np.concatenate([line.get_xydata() for line in ax.lines[:2]])
    shown = shown[np.argsort(shown[:, 0])]
    assert shown[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert shown[:, 1].tolist() == [2.0, 2.5, 9.0, 80.0, 8900.0, 8900.0]
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.texts] == ["50", "20"]


def test_losses_that_are_close_have_a_plain_axis_and_numbers_do_not_overlap():
    ax = drawn(plots.plot_point_losses([2.5, 2.1, 3.0, 2.999], worst=3))
    assert ax.get_yscale() == "linear"
    assert [text.get_text() for text in ax.texts] == ["2", "0"]  # that of point 3 would be written over that of 2
    with pytest.raises(ShapeError, match=r"points \(2,\)"):
        plots.plot_point_losses([2.5, 2.1, 3.0], points=[1, 2])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.plot_coordinates([], []),
        lambda: plots.plot_point_losses([]),
        lambda: plots.plot_manifold(np.ones((5, 2)), np.zeros(5)),
    ],
)
def test_nothing_is_not_drawn(draw):
    with pytest.raises(ParameterError, match=r"at least one|two different points"):
        draw()
    assert not plt.get_fignums()
