"""From data to coordinates in one call: ethanol, and manifolds whose coordinates are known."""

import csv
import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from chains import pentane
from manifolds import clifford_torus, swiss_roll

import isopursuit as ip
from isopursuit._core.clock import Clock
from isopursuit.errors import FileError, ParameterError, ShapeError, StoppedError
from isopursuit.manifold import (
    Dictionary,
    as_dictionary,
    default_neighbours,
    differentials,
    internal_coordinates,
    tangent_spaces,
)
from isopursuit.manifold._stages import Stages
from isopursuit.manifold.dictionary import unmarked_angles
from isopursuit.manifold.evidence import Evidence
from isopursuit.molecules import ETHANOL_BONDS, load_alanine_dipeptide, load_ethanol, torsion_shapes, torsion_values

AXES = {(0, 1), (0, 2)}  # the bonds about which ethanol turns


def axes(found):
    """The middle bonds of the picked torsions."""
    return {tuple(sorted(row[1:3])) for row in found.atoms}


@pytest.fixture(scope="module")
def ethanol():
    return load_ethanol().take(slice(None, None, 4))


@pytest.fixture(scope="module")
def found(ethanol):
    return ip.find_coordinates(ethanol, 2, atoms="all", frames=40)


@pytest.fixture(scope="module")
def roll():
    return swiss_roll(2000, noise=0.1)


def test_ethanol_turns_about_its_two_bonds(found):
    assert axes(found) == AXES
    assert found.selection.search.optimal
    assert 2 < found.loss_per_point < 2.6
    assert (found.D, found.scan, len(found.matrices.labels)) == (2, None, 2)


def test_one_call_is_the_steps_one_by_one(ethanol, found):
    dictionary = internal_coordinates(ethanol, "rotatable", atoms="all")
    shapes = torsion_shapes(ethanol)
    spaces = tangent_spaces(shapes, found.points, D=2, neighbours=default_neighbours(len(shapes)))
    picked = ip.select(differentials(dictionary, spaces, points=shapes), aggregate=found.selection.aggregate)
    assert found.labels == picked.labels
    assert found.loss_per_point == pytest.approx(picked.loss_per_point)
    np.testing.assert_allclose(found.point_log_losses, picked.search.point_log_losses, atol=1e-9)


def test_the_losses_at_the_points_are_combined_into_the_loss_per_point(ethanol):
    options = {"atoms": "all", "frames": 30}
    summed = ip.find_coordinates(ethanol, 2, aggregate="sum", **options)
    assert summed.loss_per_point == pytest.approx(summed.point_losses.mean())
    trimmed = ip.find_coordinates(ethanol, 2, aggregate=0.5, **options)
    assert trimmed.loss_per_point == pytest.approx(np.sort(trimmed.point_losses)[:15].mean())


def test_the_worst_points_are_named_by_their_number_in_the_trajectory(found):
    worst = found.worst(3)
    assert worst.tolist() == np.argsort(-found.point_losses)[:3].tolist()
    for i in worst:
        assert f"{found.points[i]} ({found.point_losses[i]:.4g})" in str(found)


def test_quality_comes_before_proof(ethanol, found):
    assert found.quality == "good coordinates"
    assert found.verdict.startswith("good coordinates: loss per direction 1.0")
    assert found.verdict.endswith("(ideal 1); this is proved to be the best subset")
    assert found.summary[0] == found.verdict
    far = ip.find_coordinates(ethanol, 2, atoms="all", frames=20, unit=0.1)
    assert far.quality == "not coordinates"
    assert "try another D" in far.notes[0]
    assert far.verdict.startswith("not coordinates: loss per direction ")


def test_frames_are_drawn_by_the_seed_and_without_repeats(ethanol):
    draws = [ip.find_coordinates(ethanol, 2, atoms="all", frames=20, seed=seed).points for seed in (0, 0, 1)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert set(draws[0].tolist()) != set(draws[2].tolist())
    assert len(set(draws[0].tolist())) == 20
    given = ip.find_coordinates(ethanol, 2, atoms="all", frames=[5, 3, 400])
    assert given.points.tolist() == [5, 3, 400]


def test_atoms_keep_their_numbers_of_the_file(ethanol):
    chosen = [8, 2, 0, 1, 5, 6]  # another order, and fewer
    found = ip.find_coordinates(ethanol, 2, atoms=chosen, frames=20)
    assert axes(found) == AXES
    bonds = {frozenset(bond) for bond in ETHANOL_BONDS}
    assert all(frozenset(pair) in bonds for row in found.atoms for pair in pairwise(row))
    np.testing.assert_allclose(found.values(), torsion_values(ethanol.positions, found.atoms), atol=1e-12)


def test_the_table_has_the_picked_torsions_along_all_frames(ethanol, found, tmp_path):
    found.to_table(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["frame", *found.labels]
    np.testing.assert_array_equal(np.array(rows, dtype=float)[:, 0], np.arange(len(ethanol.positions)))
    np.testing.assert_array_equal(np.array(rows, dtype=float)[:, 1:], found.values())
    np.testing.assert_allclose(found.values(), torsion_values(ethanol.positions, found.atoms), atol=1e-12)
    with pytest.raises(ParameterError, match=r"\.csv"):
        found.to_table(tmp_path / "t.xlsx")
    with pytest.raises(FileError, match="does not exist"):
        found.to_table(tmp_path / "none" / "t.csv")


def test_plumed_counts_atoms_from_one(found, roll, tmp_path):
    found.to_plumed(tmp_path / "plumed.dat")
    lines = re.findall(r"TORSION ATOMS=([\d,]+)", (tmp_path / "plumed.dat").read_text())
    assert [tuple(int(atom) - 1 for atom in line.split(",")) for line in lines] == list(found.atoms)
    of_points = ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary, frames=20)
    assert of_points.atoms is None
    with pytest.raises(ParameterError, match="PLUMED"):
        of_points.plumed_content()


def test_the_text_fits_one_screen_and_has_no_long_number(ethanol, found):
    text = str(found)
    assert len(text.splitlines()) < 24
    for word in (*found.labels, "ideal 2", "this is proved to be the best subset", "worst frames", "D = 2 was given"):
        assert word in text
    far = ip.find_coordinates(ethanol, 2, atoms="all", frames=20, unit=0.01)  # every length is far from 1
    assert "loss per frame e^" in str(far)
    assert not re.search(r"\d{8}", str(far))


def test_the_answer_is_json(found):
    answer = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert answer["labels"] == list(found.labels)
    assert answer["atoms"] == [list(row) for row in found.atoms]
    assert answer["selection"]["status"] == "optimal"
    assert len(answer["point_log_losses"]) == len(answer["points"]) == 40


def test_without_a_dimension_those_that_are_possible_are_compared(ethanol):
    found = ip.find_coordinates(ethanol, atoms="all", frames=20)
    assert found.D == found.scan.recommended == len(found.labels) == 2
    assert [row.D for row in found.scan.rows] == [1, 2]  # two bonds turn
    assert "D = 2 is recommended" in str(found)
    answer = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert answer["D_is"] == "recommended"
    assert [row["D"] for row in answer["dimensions"]] == [1, 2]


def test_a_dimension_beyond_the_number_of_functions_is_refused(roll):
    one = as_dictionary(roll.dictionary.gradients[:, :, :1], roll.dictionary.labels[:1])
    with pytest.raises(ParameterError, match=r"^D=2 functions cannot be picked from 1"):
        ip.find_coordinates(roll.points, 2, dictionary=one, frames=20)
    assert [row.D for row in ip.find_coordinates(roll.points, dictionary=one, frames=20).scan.rows] == [1]


@pytest.mark.parametrize(
    ("N", "options", "needed"),
    [
        (10, {}, 40),
        (10, {"D": 1, "neighbours": 10}, 20),
        (59, {"D": 2}, 60),
        (59, {"D": 2, "neighbours": 30}, 60),
        (60, {"D": 2}, 0),
        (59, {"D": 2, "neighbours": 29}, 0),
    ],
)
def test_neighbourhoods_of_more_than_half_of_the_data_are_refused(N, options, needed):
    roll = swiss_roll(N)
    if needed:
        with pytest.raises(ParameterError, match=f"at least {needed} points are needed"):
            ip.find_coordinates(roll.points, dictionary=roll.dictionary, **options)
    else:
        found = ip.find_coordinates(roll.points, dictionary=roll.dictionary, **options)
        assert found.tangents.neighbours <= N / 2


def test_points_and_functions_of_any_kind(roll):
    found = ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary)
    assert set(found.labels) == set(roll.truth)
    np.testing.assert_array_equal(found.values()[:, 0], roll.dictionary.value(found.labels[0]))
    assert "points in 3 dimensions" in str(found)
    assert found.unit == "each function has mean square length 1"
    torus = clifford_torus(2000, noise=0.05)
    assert set(ip.find_coordinates(torus.points, 2, dictionary=torus.dictionary, unit=None).labels) == set(torus.truth)


@pytest.mark.parametrize("unit", [1.0, 180 / np.pi, [1e-3, 40.0]])
@pytest.mark.parametrize("radii", [(1.0, 1.6), None])
def test_the_angles_of_a_torus_are_found_whatever_their_units(unit, radii):
    """A flat torus of two radii, and the torus in three dimensions, which no functions describe isometrically."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-np.pi, np.pi, (2, 3000))
    if radii is None:
        points = np.column_stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)])
    else:
        points = np.column_stack([r * f(t) for r, t in zip(radii, (u, v), strict=True) for f in (np.cos, np.sin)])
    scale = dict(zip("uv", np.broadcast_to(unit, 2), strict=True))
    values = {"u": scale["u"] * u, "v": scale["v"] * v}
    values |= {"u + v": (u + v) % (2 * np.pi), "u - v": (u - v) % (2 * np.pi), "x": points[:, 0], "z": points[:, -1]}
    periods = {"u": 2 * np.pi * scale["u"], "v": 2 * np.pi * scale["v"], "u + v": 2 * np.pi, "u - v": 2 * np.pi}
    found = ip.find_coordinates(points, 2, dictionary=values, periodic=periods)
    assert set(found.labels) == {"u", "v"}
    assert found.quality == "good coordinates"
    assert found.evidence.same == 10


def test_gradients_at_the_chosen_points_are_enough(roll):
    at = np.arange(0, 2000, 40)
    everywhere = ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary, frames=at)
    there = roll.dictionary.take(at)
    here = ip.find_coordinates(roll.points, 2, dictionary=Dictionary(there.gradients, there.labels), frames=at)
    assert here.labels == everywhere.labels
    assert here.loss_per_point == everywhere.loss_per_point
    with pytest.raises(ParameterError, match="no values at all points"):
        here.values()
    with pytest.raises(ShapeError, match="gradients at 50 points"):
        ip.find_coordinates(roll.points, 2, dictionary=there)


def test_stages_come_in_order_and_a_callback_stops_them(ethanol):
    seen = []
    ip.find_coordinates(ethanol, atoms="all", frames=20, callback=lambda stage, *_: seen.append(stage.split(",")[0]))
    stages = list(dict.fromkeys(seen))
    assert stages[:2] == ["reading", "estimating tangent spaces"]
    assert set(stages[2:]) <= {"searching", "drawing points again"}
    with pytest.raises(StoppedError, match="while estimating tangent spaces"):
        ip.find_coordinates(ethanol, 2, atoms="all", callback=lambda stage, *_: stage == "estimating tangent spaces")


def test_a_search_that_is_stopped_answers_with_its_best(roll):
    found = ip.find_coordinates(
        roll.points, 3, dictionary=roll.dictionary, frames=20, callback=lambda stage, *_: stage.startswith("searching")
    )
    assert len(found.labels) == 3
    assert found.selection.search.status in ("interrupted", "optimal")


def test_a_stage_that_would_exceed_the_time_limit_is_stopped_with_an_estimate(ethanol):
    with pytest.raises(StoppedError, match=r"time limit is too short"):
        ip.find_coordinates(ethanol, 2, atoms="all", time_limit=0.001)
    stages = Stages(Clock.of(10.0), None)
    stages("estimating tangent spaces", 0, 100)
    stages.began["estimating tangent spaces"] -= 2.0  # two seconds ago
    with pytest.raises(StoppedError, match=r"would take until (198|199|200) s.* Pass .*time_limit=400"):
        stages("estimating tangent spaces", 1, 100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frames": 0}, "frames=0"),
        ({"frames": []}, "frames is empty"),
        ({"frames": [10**6]}, "from 0 to 3999"),
        ({"dictionary": "bond"}, "bond"),
        ({"aggregate": "mean"}, "aggregate='mean'"),
        ({"atoms": "heavy"}, "no torsion"),
        ({"neighbours": 2}, "neighbours=2"),
        ({"D": 0}, "D=0"),
        ({"D": 13}, "cannot be picked from 2"),
        ({"seed": -1}, "seed=-1"),
        ({"unit": "metre"}, "unit='metre'"),
        ({"time_limit": 0}, "time_limit=0"),
    ],
)
def test_wrong_options_are_refused(ethanol, options, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        ip.find_coordinates(ethanol, **{"D": 2, "atoms": "all", "frames": 10, **options})


def test_data_and_dictionary_must_fit(ethanol, roll):
    with pytest.raises(ShapeError, match="values at 2000 points; expected values at all 4000 points"):
        ip.find_coordinates(ethanol, 2, atoms="all", dictionary=roll.dictionary.values)
    with pytest.raises(ParameterError, match="need dictionary="):
        ip.find_coordinates(roll.points, 2)
    with pytest.raises(ShapeError, match="values at 50 points"):
        ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary.values[:50])


def test_neighbours_grow_more_slowly_than_the_number_of_points():
    sizes = np.array([default_neighbours(N) for N in (1000, 8000, 64_000)])
    np.testing.assert_allclose(sizes[1:] / sizes[:-1], 4.0, rtol=0.02)
    assert default_neighbours(10) == 30
    assert default_neighbours(100, 8) == 90


def test_a_point_where_all_functions_stand_still_is_left_out_and_named():
    roll = swiss_roll(1000, noise=0.05)
    gradients = roll.dictionary.gradients.copy()
    gradients[7] = 0.0
    dictionary = as_dictionary(gradients, roll.dictionary.labels, roll.dictionary.values)
    found = ip.find_coordinates(roll.points, 2, dictionary=dictionary, frames=range(40))
    assert set(found.labels) == set(roll.truth)
    assert len(found.points) == 39
    assert 7 not in found.points
    assert any("left out" in note and ": 7." in note for note in found.notes)
    assert found.values().shape == (1000, 2)


@pytest.mark.parametrize("kind", ["array", "frame", "mapping", "callables", "dictionary"])
def test_values_are_enough(roll, kind):
    labels = ["x", "arc length", "radius", "height", "linear 1"]
    columns = roll.values(*labels)
    values = np.column_stack(list(columns.values()))
    given = {
        "array": values,
        "frame": pl.DataFrame(values, schema=labels),
        "mapping": columns,
        "callables": {label: (lambda _, label=label: columns[label]) for label in labels},
        "dictionary": as_dictionary(values=values, labels=labels),
    }[kind]
    found = ip.find_coordinates(roll.points, 2, dictionary=given, frames=40)
    assert set(found.labels) == ({1, 3} if kind == "array" else set(roll.truth))
    assert found.quality == "good coordinates"
    assert found.values().shape == (2000, 2)
    assert found.matrices.errors.shape == found.matrices.matrices.shape


def test_functions_of_a_molecule_by_callables_and_a_colvar_file(ethanol, tmp_path):
    """A distance that follows the hydroxyl's torsion does not replace it; the file says which variables turn."""
    functions = {
        "HO–C1": lambda r: np.linalg.norm(r[:, 8] - r[:, 1], axis=1),
        "methyl": lambda r: torsion_values(r, [[5, 1, 0, 2]])[:, 0],
        "hydroxyl": lambda r: torsion_values(r, [[8, 2, 0, 1]])[:, 0],
    }
    options = {"D": 2, "atoms": "all", "frames": 40}
    found = ip.find_coordinates(ethanol, dictionary=functions, periodic=["methyl", "hydroxyl"], **options)
    assert set(found.labels) == {"methyl", "hydroxyl"}
    rows = np.column_stack([np.arange(len(ethanol.positions)), *(f(ethanol.positions) for f in functions.values())])
    lines = ["#! FIELDS time d phi psi", *(f"#! SET {end}_{name} {sign}pi" for name in ("phi", "psi") for end, sign in
             (("min", "-"), ("max", "")))]  # fmt: skip
    lines += [" ".join(f"{x:.9f}" for x in row) for row in rows.tolist()]
    (tmp_path / "COLVAR").write_text("\n".join(lines))
    again = ip.find_coordinates(ethanol, dictionary=str(tmp_path / "COLVAR"), **options)
    assert set(again.labels) == {"phi", "psi"}
    assert again.loss_per_point == pytest.approx(found.loss_per_point, rel=1e-6)
    with pytest.raises(ParameterError, match="dictionary='COLVARS'"):
        ip.find_coordinates(ethanol, dictionary="COLVARS", **options)


def test_distances_and_angles_of_a_molecule_are_functions_too(ethanol):
    """The same answer as with callables: the distance follows one torsion."""
    functions = {"HO–C1": (8, 1), "C–C–O": (1, 0, 2), "methyl": (5, 1, 0, 2), "hydroxyl": (8, 2, 0, 1)}
    found = ip.find_coordinates(ethanol, 2, dictionary=functions, atoms="all", frames=40)
    assert set(found.labels) == {"methyl", "hydroxyl"}
    np.testing.assert_allclose(found.matrices.errors.shape, (40, 2, 4))
    only = ip.find_coordinates(ethanol, 1, dictionary=[(8, 1), (1, 0, 2)], atoms="all", frames=40)
    assert "DISTANCE ATOMS=" in only.plumed_content() or "ANGLE ATOMS=" in only.plumed_content()
    assert only.plumed_content().startswith(f"# {only.quality}: ")


def test_without_redraws_nothing_is_called_good(ethanol):
    found = ip.find_coordinates(ethanol, 2, atoms="all", frames=20)
    assert found.quality == "good coordinates"
    hurried = replace(found, evidence=Evidence((), 0, np.array([]), np.array([])))
    assert hurried.quality == "poor coordinates"
    assert "no redraws in the time limit" in hurried.verdict
    assert "no redraws in the time limit" in hurried.row.against


def test_angles_that_jump_are_noticed():
    t = np.random.default_rng(0).uniform(-np.pi, np.pi, 1000)
    found = ip.find_coordinates(np.column_stack([np.cos(t), np.sin(t)]), 1, dictionary={"t": t, "sin": np.sin(t)})
    assert any(note.startswith("t may be angles") and "periodic=" in note for note in found.notes)
    turn = np.linspace(0, 6.28, 40)[:, None]
    assert unmarked_angles(Dictionary(None, ("d",), turn)) == ["d"]
    assert unmarked_angles(Dictionary(None, ("d",), turn, atoms=((0, 1),))) == []


def test_functions_that_must_or_must_not_be_picked(roll):
    found = ip.find_coordinates(
        roll.points, 2, include=["x"], exclude=["height"], dictionary=roll.dictionary, frames=20
    )
    assert "x" in found.labels
    assert "height" not in found.labels
    peptide = load_alanine_dipeptide()
    without = ip.find_coordinates(peptide, 2, exclude=["φ"], frames=20)  # by the name alone
    assert not any(str(label).startswith("φ") for label in without.labels)
    with pytest.raises(TypeError, match=r"unexpected option 'exclud'.*exclude"):
        ip.find_coordinates(roll.points, 2, exclud=["x"], dictionary=roll.dictionary)


def test_at_most_one_torsion_about_each_bond(ethanol):
    """Two of the nine torsions about C–C are nearly the same function; they are one choice, and one group."""
    options = {"atoms": "all", "dictionary": "bonds", "frames": 20}
    found = ip.find_coordinates(ethanol, 2, exclude=["C1–C0–O2–H8 torsion"], **options)
    assert axes(found) == AXES
    assert [row.D for row in ip.find_coordinates(ethanol, **options).scan.rows] == [1, 2]
    with pytest.raises(ParameterError, match="cannot be picked from 2"):
        ip.find_coordinates(ethanol, 3, **options)


def test_a_choice_that_most_redraws_do_not_make_is_doubted():
    """A disc has no two directions of its own: x, y and every pair of turned axes are equally good."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1500, 2))
    turns = np.linspace(0, np.pi, 24, endpoint=False)
    values = np.column_stack([np.cos(t) * points[:, 0] + np.sin(t) * points[:, 1] for t in turns])
    found = ip.find_coordinates(points, 2, dictionary=values + 0.05 * rng.normal(size=values.shape), frames=40)
    assert found.evidence.same < 5
    assert found.quality == "poor coordinates"
    assert f"another choice in {10 - found.evidence.same} of 10 redraws" in found.verdict


def test_frames_that_follow_each_other_are_redrawn_together():
    """Two halves of a trajectory with different answers: blocks see it as often as it is, single frames hardly do."""
    from isopursuit.manifold.evidence import _redrawn

    rng, at = np.random.default_rng(0), np.random.default_rng(1).permutation(100)
    blocks = at[_redrawn(at, rng, blocks=True)]
    assert (np.diff(blocks) % 100 == 1).mean() > 0.85
    share = [np.mean(at[_redrawn(at, rng, blocks=kind)] < 50) for kind in (True, False) for _ in range(200)]
    assert np.std(share[:200]) > 2 * np.std(share[200:])
    assert np.mean(share) == pytest.approx(0.5, abs=0.02)


def test_the_torsions_of_a_chain_are_found():
    """n-Pentane by exact sampling. Planar angles, as in the paper, are flat at trans: their loss is hundreds."""
    found = ip.find_coordinates(pentane(), dictionary="bonds")
    assert found.D == 2
    assert found.loss_per_point < 2.05
    changed = replace(found, evidence=replace(found.evidence, random=np.array([0.0])))
    assert changed.quality == "not coordinates"  # if random functions reach the same
