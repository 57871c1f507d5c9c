"""Pictures of coordinates of a torus and of ethanol."""

from dataclasses import replace

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from manifolds import clifford_torus

import isopursuit as ip
from isopursuit import show as plots
from isopursuit.errors import ParameterError
from isopursuit.molecules import Trajectory, load_ethanol

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
    options = {"dictionary": manifold.values(), "periodic": ["first arc"], "frames": 30}
    return ip.find_coordinates(manifold.points, [1, 2, 3], include=["first arc", "x1"], **options)


@pytest.fixture(scope="module")
def ethanol():
    return ip.find_coordinates(load_ethanol().take(slice(None, None, 4)), 2, atoms="all", frames=20)


def renamed(found, *labels):
    """The answer with other labels of the picked functions."""
    names = list(found.matrices.labels)
    for i, label in zip(found.selection.indices.tolist(), labels, strict=True):
        names[i] = label
    return replace(found, matrices=replace(found.matrices, labels=tuple(names)))


def test_the_manifold_is_shown_by_its_principal_components(torus):
    ax = drawn(plots.plot_manifold(torus, function=1))
    shown = ax.collections[0].get_offsets()
    s = np.linalg.svd(torus.data - torus.data.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose((np.asarray(shown) ** 2).sum(axis=0), s[:2] ** 2)
    np.testing.assert_allclose(ax.collections[0].get_array(), torus.values()[:, 1])
    assert f"2 components, {(s[:2] ** 2).sum() / (s**2).sum():.0%}" in ax.get_title()
    three = drawn(plots.plot_manifold(torus, plt.figure().add_subplot(projection="3d")))
    assert "3 components" in three.get_title()
    unknown = replace(torus, dictionary=replace(torus.dictionary, values=None))
    for draw in (plots.plot_manifold, plots.plot_coordinates):
        with pytest.raises(ParameterError, match="values"):
            draw(unknown)


def test_angles_a_turn_apart_have_the_same_colour(ethanol):
    turned = replace(ethanol, dictionary=replace(ethanol.dictionary, values=ethanol.dictionary.values + 2 * np.pi))
    first, second = (plots.plot_manifold(found) for found in (ethanol, turned))
    np.testing.assert_allclose(first.collections[0].get_array(), second.collections[0].get_array(), atol=1e-12)
    norm, colours = first.collections[0].norm, first.collections[0].cmap
    assert (norm.vmin, norm.vmax) == (-np.pi, np.pi)
    np.testing.assert_allclose(colours(0.0), colours(1.0), atol=0.02)


def test_the_spectra_show_where_the_dimension_is(torus):
    ax = drawn(plots.plot_spectra(torus.tangents))
    assert f"D = {torus.D}" in legend(ax)
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    np.testing.assert_allclose(mean.get_ydata(), torus.tangents.shares.mean(axis=0))


def test_dimensions_are_losses_with_their_range_over_redraws_and_random_functions(torus):
    ax = drawn(plots.plot_dimension(torus.scan))
    dots = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    assert [line.get_xdata()[0] for line in dots] == [row.D for row in torus.scan.rows]
    losses = [min(row.log_loss, np.log(2e6)) for row in torus.scan.rows]
    np.testing.assert_allclose([line.get_ydata()[0] for line in dots], np.exp(losses))
    assert any(text.startswith(f"D = {torus.scan.recommended}: ") for text in legend(ax))
    assert "best of random functions" in legend(ax)


def test_torsions_are_marked_on_their_molecule(ethanol):
    ax = drawn(plots.plot_molecule(ethanol))
    assert sorted(texts(ax.texts)) == sorted([*(f"{s}{i}" for i, s in enumerate("CCOHHHHHH")), "1", "2"])
    assert legend(ax) == [f"{i}: {label}" for i, label in enumerate(ethanol.labels, start=1)]
    assert len(ax.lines) == 8 + 6  # bonds, and three lines for each torsion
    axes = [line for line in ax.lines if line.get_linewidth() > 5]
    places = {text.get_text(): np.array(text.get_position()) for text in ax.texts}
    for other, line in zip(("C1", "O2"), axes, strict=True):
        np.testing.assert_allclose(line.get_xydata().mean(axis=0), (places["C0"] + places[other]) / 2, atol=0.2)
    assert axes[0].get_color() != axes[1].get_color()
    short = drawn(plots.plot_molecule(renamed(ethanol, "φ (C0–C1)", "ψ (C0–O2)")))
    assert {"φ", "ψ"} <= set(texts(short.texts))
    distances = replace(ethanol.dictionary, atoms=((8, 1), (5, 1, 0)))
    thin = drawn(plots.plot_molecule(replace(ethanol, dictionary=distances)))
    assert [line.get_linewidth() for line in thin.lines] == [1.2] * 8 + [1.5] * 3
    with pytest.raises(ParameterError, match="no atoms"):
        plots.plot_molecule(replace(ethanol, dictionary=replace(ethanol.dictionary, atoms=None)))


def test_a_large_molecule_names_only_the_atoms_of_its_torsions(ethanol):
    positions = np.random.default_rng(0).normal(size=(1, 200, 3))
    large = Trajectory(positions, [6] * 200, bonds=[(i, i + 1) for i in range(199)])
    ax = drawn(plots.plot_molecule(replace(ethanol, trajectory=large)))
    named = [text for text in texts(ax.texts) if text.startswith("C")]
    assert sorted(named) == sorted({f"C{atom}" for row in ethanol.atoms for atom in row})


def test_coordinates_span_the_plane(torus):
    ax = drawn(plots.plot_coordinates(torus))
    np.testing.assert_allclose(ax.collections[0].get_offsets(), torus.values()[:, :2], atol=1e-12)
    assert (ax.get_xlabel(), ax.get_ylabel()) == torus.labels[:2]
    with pytest.raises(ParameterError, match="functions="):
        plots.plot_coordinates(torus, functions=(0, 7))


def test_two_torsions_make_a_ramachandran_plot_of_a_whole_turn_in_degrees(ethanol):
    few = replace(ethanol, dictionary=ethanol.dictionary.take([0, 1]), data=ethanol.data[:2])
    values = np.array([[0.1, 3 * np.pi / 2], [np.pi + 0.1, 0.0]])
    few = replace(few, dictionary=replace(few.dictionary, values=values))
    ax = drawn(plots.plot_coordinates(renamed(few, "φ (C–N–CA–C)", "ψ")))
    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[5.73, -90], [-174.27, 0]], atol=0.01)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("φ", "ψ")
    assert (ax.get_xlim(), ax.get_ylim()) == ((-180, 180), (-180, 180))
    assert texts(ax.get_xticklabels()) == ["−180°", "−90°", "0°", "90°", "180°"]
    many = drawn(plots.plot_coordinates(renamed(ethanol, HOSTILE, f"{HOSTILE} 2")))
    assert many.collections[0].get_array().sum() == 4000


def with_losses(found, losses, undetermined):
    """The answer with these losses at points 10, 20, …"""
    at = 10 * np.arange(1, len(losses) + 1)
    tangents = replace(found.tangents, at=at)
    checks = replace(found.checks, at=at, undetermined=np.array(undetermined))
    made = replace(found, matrices=replace(found.matrices, tangents=tangents), checks=checks)
    vars(made)["point_log_losses"] = np.log(losses)
    return made


def test_losses_rise_and_the_worst_points_have_their_numbers(ethanol):
    unsure = [False, True, False, False, False, True]
    ax = drawn(plots.plot_point_losses(with_losses(ethanol, [2.5, 80.0, 2.0, 9.0, np.inf, 1e4], unsure)))
    above = "above 4450: 2"  # a hundred times the median
    assert legend(ax) == ["determined (4)", "tangent space not determined (2)", above, "ideal: 2"]
    shown = np.concatenate([line.get_xydata() for line in ax.lines[:2]])
    shown = shown[np.argsort(shown[:, 0])]
    np.testing.assert_allclose(shown[:, 1], [2.0, 2.5, 9.0, 80.0, 8900.0, 8900.0])
    assert ax.get_yscale() == "log"
    assert texts(ax.texts) == ["50", "20"]
    ax = drawn(plots.plot_point_losses(with_losses(ethanol, [2.5, 2.1, 3.0, 2.999], [False] * 4)))
    assert ax.get_yscale() == "linear"
    assert texts(ax.texts) == ["30", "10"]  # that of point 40 would be written over that of 30
