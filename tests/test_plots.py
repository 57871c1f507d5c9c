import sys
from xml.etree import ElementTree

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
from isopursuit.manifold.dictionary import differentials
from isopursuit.manifold.dimension import dimension_evidence
from isopursuit.manifold.synthetic import clifford_torus
from isopursuit.manifold.tangent import tangent_spaces
from isopursuit.show._style import ORANGE, SKY, colour_map, short_heads

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
    X = np.random.default_rng(1).normal(size=(100, 120))
    labels = [f"a candidate with quite a long name, number {i}" for i in range(120)]
    picked = ip.select(X, method="greedy", labels=labels)
    ax = plots.plot_gram(picked)
    shown = texts(ax.get_yticklabels())
    assert 10 < len(shown) <= 34
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
    ax = drawn(plots.plot_lengths(X, picked, normalized=True))
    assert sum(bar.get_height() for bar in ax.patches) == 178
    expected = np.linalg.norm(ip.symmetric_normalize(X), axis=0)[picked.indices]
    np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), expected)


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


@pytest.fixture(scope="module")
def torus():
    manifold = clifford_torus(800)
    spaces = tangent_spaces(manifold.points, range(40), neighbours=40)
    found = differentials(manifold.dictionary.take(range(40)), spaces)
    return manifold, spaces, found


def test_the_manifold_is_shown_by_its_principal_components(torus):
    manifold, _, _ = torus
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
    manifold, _, _ = torus
    values = manifold.dictionary.value("first arc")
    first, second = (plots.plot_manifold(manifold.points, v, cyclic=True) for v in (values, values + 2 * np.pi))
    np.testing.assert_allclose(first.collections[0].get_array(), second.collections[0].get_array(), atol=1e-12)
    norm, colours = first.collections[0].norm, first.collections[0].cmap
    assert (norm.vmin, norm.vmax) == (-np.pi, np.pi)
    np.testing.assert_allclose(colours(0.0), colours(1.0), atol=0.02)


def test_components_that_are_computed_once_draw_the_same_picture(torus):
    manifold, _, _ = torus
    values = manifold.dictionary.value("first arc")
    once = plots.principal_components(manifold.points)
    first, second = (drawn(plots.plot_manifold(points, values)) for points in (manifold.points, once))
    np.testing.assert_allclose(first.collections[0].get_offsets(), second.collections[0].get_offsets())
    assert first.get_title() == second.get_title()
    variances = np.linalg.eigvalsh(np.cov(manifold.points.T))[::-1]
    np.testing.assert_allclose(once.shares, variances[:3] / variances.sum())


def test_no_colour_of_a_value_vanishes_on_light_or_on_dark_paper():
    for cyclic in (False, True):
        rgb = colour_map(cyclic=cyclic)(np.linspace(0, 1, 64))[:, :3]
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        light = linear @ [0.2126, 0.7152, 0.0722]  # the relative luminance of WCAG
        for paper in (0.98, 0.009):  # of the report's two papers
            contrast = (np.maximum(light, paper) + 0.05) / (np.minimum(light, paper) + 0.05)
            assert contrast.min() > 1.2


def test_the_picked_coordinates_span_the_plane(torus):
    manifold, _, _ = torus
    x, y = (manifold.dictionary.value(label) for label in manifold.truth)
    ax = drawn(plots.plot_coordinates(x, y, labels=manifold.truth, cyclic=True, colours=x + y))
    np.testing.assert_allclose(ax.collections[0].get_offsets(), np.column_stack([x, y]), atol=1e-12)
    assert ax.get_xlabel() == "first arc (rad)"
    assert ax.get_aspect() == 1.0
    with pytest.raises(ShapeError, match="one length"):
        plots.plot_coordinates(x, y[:3])


def test_the_spectra_show_where_the_dimension_is(torus):
    _, spaces, _ = torus
    ax = drawn(plots.plot_spectra(spaces))
    assert "D = 2 (estimated)" in legend(ax)
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    np.testing.assert_allclose(mean.get_ydata(), (spaces.spectra / spaces.totals[:, None]).mean(axis=0))


def test_the_evidence_for_the_dimension_is_shares_by_size(torus):
    manifold, _, _ = torus
    evidence = dimension_evidence(manifold.points, range(20), neighbours=[20, 40, 80])
    ax = drawn(plots.plot_dimension(evidence, shown=3))
    lines = [line for line in ax.lines if len(line.get_xdata())]
    assert [line.get_xdata().tolist() for line in lines] == [[20, 40, 80]] * 3
    np.testing.assert_allclose(lines[1].get_ydata(), np.median(evidence.shares[:, :, 1], axis=1))
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert f"the first 2: suggested by {evidence.votes.mean(axis=0)[2]:.0%}" in legend(ax)
    with pytest.raises(ParameterError, match="shown=0"):
        plots.plot_dimension(evidence, shown=0)


def test_frequencies_are_counts_over_points(torus):
    _, _, found = torus
    picked = ip.select_pointwise(found)
    ax = drawn(plots.plot_frequencies(picked, shown=3))
    top = np.argsort(-picked.counts, kind="stable")[:3]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx((picked.counts[top] / 40).tolist())
    assert texts(ax.get_yticklabels()) == [found.labels[i] for i in top]
    ax = drawn(plots.plot_frequencies(picked, kind="subsets"))
    assert texts(ax.get_yticklabels())[0] == " + ".join(picked.subsets[0].labels)
    with pytest.raises(ParameterError, match="subsets"):
        plots.plot_frequencies(picked, kind="pairs")


def test_a_selection_for_many_points_shows_its_mean_inner_products(torus):
    _, _, found = torus
    picked = ip.select(found)
    ax = drawn(plots.plot_gram(picked))
    mean = np.mean([m.T @ m for m in found.matrices[:, :, picked.indices]], axis=0)
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


def test_each_point_has_its_loss_and_the_worst_have_their_numbers():
    losses = np.array([2.5, 80.0, 2.0, 9.0, np.inf, 1e40])
    numbers = [10, 20, 30, 40, 50, 60]
    unsure = [False, True, False, False, False, True]
    ax = drawn(plots.plot_point_losses(losses, points=numbers, ideal=2, undetermined=unsure))
    assert legend(ax) == [
        "determined (3)",
        "tangent space not determined (1)",
        "determined, above 10⁶ (1)",
        "not determined, above 10⁶ (1)",
        "ideal: 2",
    ]
    shown = dict(zip(*np.concatenate([line.get_xydata() for line in ax.lines[:4]]).T, strict=True))
    assert [shown[x] for x in numbers[:4]] == losses[:4].tolist()
    assert 1e6 < shown[50] == shown[60] < 1e7
    assert ax.get_yscale() == "log"
    assert {text.get_text() for text in ax.texts} == {"50", "60", "20"}


def test_losses_that_are_close_have_a_plain_axis_and_may_be_sorted():
    losses = np.array([2.5, 2.1, 3.0])
    ax = drawn(plots.plot_point_losses(losses, order="losses", worst=1))
    assert ax.get_yscale() == "linear"
    assert ax.get_legend() is None
    assert dict(ax.lines[0].get_xydata().tolist()) == {1.0: 2.1, 2.0: 2.5, 3.0: 3.0}
    assert texts(ax.texts) == ["2"]
    with pytest.raises(ShapeError, match="3 losses"):
        plots.plot_point_losses(losses, points=[1, 2])
    with pytest.raises(ParameterError, match="'points' or 'losses'"):
        plots.plot_point_losses(losses, order="names")


def test_a_ramachandran_plot_is_a_whole_turn_in_degrees():
    few = drawn(plots.plot_ramachandran([0.1, np.pi + 0.1], [3 * np.pi / 2, 0.0], labels=("φ (C–N–CA–C)", "ψ")))
    np.testing.assert_allclose(few.collections[0].get_offsets(), [[5.73, -90], [-174.27, 0]], atol=0.01)
    assert (few.get_xlabel(), few.get_ylabel()) == ("φ (C–N–CA–C)", "ψ")
    assert (few.get_xlim(), few.get_ylim()) == ((-180, 180), (-180, 180))
    assert texts(few.get_xticklabels()) == ["−180°", "−90°", "0°", "90°", "180°"]
    angles = np.random.default_rng(0).uniform(-9, 9, (2, 5000))
    many = drawn(plots.plot_ramachandran(*angles, labels=(HOSTILE, HOSTILE)))
    assert many.collections[0].get_array().sum() == 5000
    with pytest.raises(ShapeError, match="one length"):
        plots.plot_ramachandran(angles[0], angles[1, :3])


BACKBONE = ["CH3", "C", "N", "CA", "C", "N"]
CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
ZIGZAG = np.array([[1.2 * i, 0.7 * (i % 2), 0.1 * i * (i % 3)] for i in range(6)])


@pytest.mark.parametrize("bonds", [CHAIN, []])
def test_torsions_are_marked_on_the_molecule_with_or_without_rdkit_and_bonds(bonds, monkeypatch):
    labels = ["φ (ACE:C–ALA:N–ALA:CA–ALA:C)", "ψ (ALA:N–ALA:CA–ALA:C–NME:N)"]
    rows = [[1, 2, 3, 4], [2, 3, 4, 5]]
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
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


@pytest.mark.needs("rdkit")
def test_bonds_alone_place_the_atoms_of_a_molecule():
    ax = drawn(plots.plot_torsions(BACKBONE, [[0, 1, 2, 3]], bonds=CHAIN, labels=["CH3–C–N–CA torsion"]))
    assert legend(ax) == ["1: CH3–C–N–CA torsion"]
    places = np.array([text.get_position() for text in ax.texts if text.get_text() in BACKBONE])
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=0.1)


def test_a_large_molecule_names_only_the_atoms_of_its_torsions():
    positions = np.random.default_rng(0).normal(size=(200, 3))
    ax = drawn(plots.plot_torsions([f"a{i}" for i in range(200)], [[5, 6, 7, 8]], positions=positions))
    assert texts(ax.texts) == ["1", "a5", "a6", "a7", "a8"]


def test_a_molecule_of_nothing_and_torsions_of_other_atoms_are_refused():
    with pytest.raises(ParameterError, match="neither bonds nor positions"):
        plots.plot_torsions(BACKBONE, [[0, 1, 2, 3]])
    with pytest.raises(ParameterError, match="the molecule has 6"):
        plots.plot_torsions(BACKBONE, [[0, 1, 2, 6]], positions=ZIGZAG)
    with pytest.raises(ShapeError, match=r"positions must be \(6, 3\)"):
        plots.plot_torsions(BACKBONE, [[0, 1, 2, 3]], positions=ZIGZAG[:5])


@pytest.mark.needs("rdkit")
def test_a_molecule_shows_every_atom_and_the_shares_of_its_pairs():
    bonds = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8)]
    shares = {(1, 0): 0.5, (5, 8): 0.3, (3, 4): 0.01}
    svg = plots.molecule_svg("CCOHHHHHH", bonds, shares)
    plain = plots.molecule_svg("CCOHHHHHH", bonds, {})
    tree = ElementTree.fromstring(svg.encode())
    assert (tree.get("width"), tree.get("height")) == ("480px", "360px")
    for number in range(9):
        assert f"atom-{number}" in plain
    assert (svg.lower().count(ORANGE.lower()) > 0, plain.lower().count(ORANGE.lower())) == (True, 0)
    assert (SKY.lower() in svg.lower(), SKY.lower() in plain.lower()) == (True, False)
    below = plots.molecule_svg("CCOHHHHHH", bonds, {(3, 4): 0.01})
    assert below == plain  # too rare to mark
    ax = drawn(plots.plot_molecule("CCOHHHHHH", bonds, shares))
    assert ax.images[0].get_array().shape[:2] == (720, 960)


@pytest.mark.needs("rdkit")
def test_rings_and_odd_valences_are_drawn():
    ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]
    assert "<svg" in plots.molecule_svg("CCCCCC", ring, {(0, 1): 1.0, (0, 3): 1.0})
    assert "<svg" in plots.molecule_svg("HFH", [(0, 1), (1, 2)], {})


@pytest.mark.needs("rdkit")
def test_pairs_of_atoms_that_are_not_there_are_refused():
    with pytest.raises(ParameterError, match="the molecule has 3"):
        plots.molecule_svg("OHH", [(0, 1), (0, 2)], {(0, 3): 0.5})


def test_without_rdkit_a_molecule_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
    with pytest.raises(PackageError, match=r"Install isopursuit\[chem\]"):
        plots.molecule_svg("OHH", [(0, 1), (0, 2)], {})


@pytest.mark.needs("rdkit")
def test_what_is_no_element_is_refused():
    with pytest.raises(ParameterError, match="'Q' is not the symbol of an element"):
        plots.molecule_svg("OQH", [(0, 1), (0, 2)], {})


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.plot_singular_values([]),
        lambda: plots.plot_coordinates([], []),
        lambda: plots.plot_ramachandran([], []),
        lambda: plots.plot_point_losses([]),
        lambda: plots.plot_manifold(np.ones((5, 2)), np.zeros(5)),
    ],
)
def test_nothing_is_not_drawn(draw):
    with pytest.raises(ParameterError, match=r"at least one|two different points|positive"):
        draw()
    assert not plt.get_fignums()


def test_without_matplotlib_a_picture_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(PackageError, match=r"Install isopursuit\[plot\], or matplotlib itself"):
        plots.plot_progress([])
