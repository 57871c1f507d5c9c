"""How often columns are picked from resampled rows, beside selections of the same resamples made one by one."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

import isopursuit as ip
from isopursuit.data import load_wine, read_table
from isopursuit.errors import ParameterError, RankError, StoppedError
from isopursuit.show import plot_stability

WINE = load_wine()
FRAME = pd.DataFrame(WINE.values, columns=list(WINE.features))


@pytest.fixture(scope="module")
def found():
    return ip.stability(FRAME, 4, unit="each", center=True, resamples=12, rng=1)


def test_every_resample_is_the_selection_of_these_rows(found):
    generator = np.random.default_rng(1)
    for picked in found.picks:
        rows = generator.integers(178, size=178)
        alone = ip.select(FRAME.iloc[rows], 4, unit="each", center=True)
        assert picked.tolist() == alone.indices.tolist()
    assert found.labels == ip.select(FRAME, 4, unit="each", center=True).labels


def test_frequencies_and_pairs_count_the_resamples(found):
    sets = [set(picked) for picked in found.picks.tolist()]
    assert found.frequency.tolist() == [sum(i in one for one in sets) / 12 for i in range(13)]
    assert found.frequency.sum() == pytest.approx(4)
    columns = found.columns.tolist()
    for a, one in enumerate(columns):
        for b, other in enumerate(columns):
            assert found.together[a, b] == pytest.approx(sum({one, other} <= some for some in sets) / 12)
    assert found.same == sum(some == set(found.indices.tolist()) for some in sets) / 12
    text = str(found)
    assert f"{100 * found.same:.0f} % of the resamples" in text
    assert all(label in text for label in found.labels)
    assert found.same < 1
    assert "most often together" in text
    assert text.splitlines()[2].split()[0] in found._repr_html_()


def test_two_copies_take_turns_and_what_stands_alone_is_always_picked():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 3))
    X = np.column_stack([base[:, 0], base[:, 0] + 0.01 * rng.normal(size=200), base[:, 1], base[:, 2]])
    found = ip.stability(X, 3, unit="each", center=True, resamples=20, labels=["one", "twin", "b", "c"])
    assert found.frequency[2:].tolist() == [1, 1]
    assert found.frequency[0] + found.frequency[1] == 1
    first = found.indices[0]
    assert found.substitute(int(first)) == (("twin", "one")[first], 1.0)
    assert found.substitute(3) is None
    assert plot_stability(found).get_title() == f"3 columns: the same in {100 * found.same:.0f} % of the resamples"


def test_of_many_points_points_are_drawn():
    points = np.random.default_rng(0).normal(size=(15, 3, 8))
    found = ip.stability(points, 2, resamples=5)
    generator = np.random.default_rng(0)
    for picked in found.picks:
        assert picked.tolist() == ip.select(points[generator.integers(15, size=15)], 2).indices.tolist()
    assert found.what == "points"


def test_what_cannot_be_resampled_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", WINE.values)
    table = read_table(tmp_path / "x.npy")
    for X in (table.standardized().features(), str(tmp_path / "x.npy")):
        with pytest.raises(ParameterError, match=r"read_table\(path\)\.values"):
            ip.stability(X, 3)
    with pytest.raises(RankError, match="Pick fewer"):
        ip.stability(np.eye(6), 6)
    with pytest.raises(StoppedError):
        ip.stability(FRAME, 3, callback=lambda done, total: True)
    stopped = ip.stability(FRAME, 3, callback=lambda done, total: done == 2)
    assert (len(stopped.picks), stopped.notes[-1][:7]) == (2, "2 of 50")


def test_the_command_judges_the_columns_that_it_shows(tmp_path):
    rng = np.random.default_rng(7)  # 12 families of 7: many answers are nearly equal
    families = rng.normal(size=(4000, 12, 1)) + rng.uniform(0.2, 1.2, (12, 7)) * rng.normal(size=(4000, 12, 7))
    frame = pd.DataFrame(families.reshape(4000, 84), columns=[f"c{i}" for i in range(84)])
    frame.to_csv(tmp_path / "families.csv", index=False)
    shown = run("select", tmp_path / "families.csv", "--features", "-k", 10, "--stability", "--resamples", 2).stdout
    picks, judged = (list(map(str.split, part.splitlines())) for part in shown.split("\nstability of"))
    assert {words[0] for words in judged if words[1:2] == ["yes"]} == {words[0] for words in picks} & set(frame)
    assert "2 of 2 searches ended without a proof" in shown


def test_the_command_prints_writes_and_draws_it(tmp_path):
    FRAME.to_csv(tmp_path / "wine.csv", index=False)
    command = ("select", tmp_path / "wine.csv", "--features", "-k", 4, "--stability", "--resamples", 6)
    answer = json.loads(run(*command, "--json").stdout)["stability"]
    expected = ip.stability(FRAME, 4, unit="each", center=True, resamples=6)
    assert set(expected.labels) == set(ip.select(FRAME, 4, unit="each", center=True).labels)
    assert answer["frequency"] == json.loads(json.dumps(expected.as_dict()))["frequency"]
    shown = run(*command, "--report", tmp_path / "r.html")
    assert "stability of 4 columns in 6 resamples of 178 rows" in shown.stdout
    assert "Stability: how often" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "--features" in run("select", tmp_path / "wine.csv", "--stability").stderr
    ruled = run(*command, "--max-correlation", 0.5)
    assert ruled.returncode == 1
    assert "rules" in ruled.stderr


def test_each_resample_keeps_the_rules_and_picks_as_many_columns():
    X = np.random.default_rng(0).normal(size=(40, 6))
    found = ip.stability(X, unit="each", center=True, groups=[0, 0, 1, 1, 2, 2], resamples=8)
    assert found.picks.shape == (8, 3)
    assert (found.picks // 2 == [0, 1, 2]).all()


def test_pointwise_picks_keep_rules_and_exclusions():
    X = np.random.default_rng(0).normal(size=(5, 2, 7))
    rules = {"exclude": [0], "apart": [(1, 2)], "method": "exact"}
    unit = float(np.median(np.linalg.norm(X[:, :, 1:], axis=1)))
    picked = ip.select_pointwise(X, unit="median", **rules)
    for indices, alone in zip(picked.indices.tolist(), X, strict=True):
        assert indices == ip.select(alone, unit=unit, **rules).indices.tolist()
