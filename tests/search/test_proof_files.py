"""Proof files: what is written checks, and what is checked is true."""

import itertools
import json
import shutil
import subprocess
import sys
import tracemalloc
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import mul
from pathlib import Path

import commands
import numpy as np
import pytest
from fuzz.families import FAMILIES
from oracles import losses

import isopursuit as ip
from isopursuit import check
from isopursuit.check import RefusedError
from isopursuit.data import load_wine

NAMES = sorted(FAMILIES)


def problem(seed):
    """A small hostile problem: a matrix, c, and options."""
    rng = np.random.default_rng(seed)
    D = int(rng.integers(1, 6))
    P = D + int(rng.integers(1, 8))
    X, options = FAMILIES[NAMES[seed % len(NAMES)]](rng, D, P), {}
    if rng.random() < 0.4:
        options["k"] = int(rng.integers(1, D + 1))
        X = X.T if rng.random() < 0.2 else X
    if rng.random() < 0.3:
        options["unit"] = ["each", "median", 2.0][rng.integers(3)]
    given = rng.permutation(X.shape[1]).tolist()
    if rng.random() < 0.3:
        options["include"] = given[:1]
    if rng.random() < 0.3:
        options["exclude"] = given[1:2]
    return X, float(rng.choice([1, 1, 1, 0.3, 0.5, 2, 3])), options


def least_loss(X, c, header):
    """The least loss of all subsets that the header allows, by brute force."""
    X, _ = check.compared(X, header["unit"], header["exclude"])
    free = np.setdiff1d(np.arange(X.shape[1]), header["include"] + header["exclude"])
    rest = header["k"] - len(header["include"])
    subsets = np.array([header["include"] + list(some) for some in itertools.combinations(free.tolist(), rest)])
    return np.nanmin(losses(X.T[subsets].mT, c))


def header_of(path):
    return json.loads(path.read_bytes().partition(b"\n")[0])


def fuzz(seeds, path):
    """How many proofs were written, all of which check and are true."""
    written = 0
    for seed in seeds:
        X, c, options = problem(seed)
        path.unlink(missing_ok=True)
        try:
            found = ip.exact_search(X, c, proof=path, workers=1, node_limit=3 if seed % 5 == 4 else None, **options)
        except ip.IsoPursuitError:
            continue
        if not path.exists():
            assert found.notes[-1].startswith("no proof file was written"), seed
            continue
        checked = ip.check_proof(path, X)
        assert checked.subset == found.indices.tolist(), seed
        assert checked.loss == pytest.approx(found.loss, rel=1e-9), seed
        assert checked.bound <= least_loss(X, c, header_of(path)) * (1 + 1e-9), seed
        assert not found.optimal or checked.bound >= checked.loss * (1 - 1e-9), seed
        written += 1
    return written


def test_every_proof_of_a_hostile_problem_checks_and_is_true(tmp_path):
    assert fuzz(range(100), tmp_path / "a.proof") > 70


@pytest.mark.long
def test_every_proof_of_many_hostile_problems_checks_and_is_true(tmp_path):
    assert fuzz(range(100, 1100), tmp_path / "a.proof") > 700


@pytest.mark.parametrize("c", [0.3, 1.0, 3.0])
def test_no_hints_make_a_bound_wrong_or_remove_a_column_of_a_better_subset(c):
    rng = np.random.default_rng(5)
    for trial in range(100):
        D = int(rng.integers(2, 6))
        k, P = int(rng.integers(1, D + 1)), D + 4
        X = rng.standard_normal((D, P)) / np.sqrt(D) * np.exp(0.3 * rng.standard_normal(P))
        subsets = np.array(list(itertools.combinations(range(P), k)))
        found = losses(X.T[subsets].mT, c)
        best = found.argmin()
        bound = min(float(np.sort(found)[len(found) // 3]), 20 * found[best])
        claim = {"k": k, "c": c, "bound": bound, "subset": subsets[best].tolist(), "loss": found[best], "unit": None}
        j = int(rng.integers(0, k + 1))
        chosen = rng.permutation(P)[:j]
        candidates = np.setdiff1d(np.arange(P), chosen)[None]
        nodes = check.SimpleNamespace(chosen=chosen[None], candidates=candidates, real=candidates >= 0)
        weights = rng.uniform(0, 1, candidates.shape) * rng.choice([0.05, 0.5, 1.0])
        with np.errstate(all="ignore"):  # as in check_proof
            tree = check.Tree(X, {**claim, "include": [], "exclude": [], "a": float(rng.choice([0, 0.4, 2]))})
            cuts = tree.cut(nodes, candidates, weights)
        inside = np.array([set(chosen) <= set(some) for some in subsets.tolist()])
        better = inside & (found < bound)
        assert cuts.bound[0] <= max(found[inside].min(), tree.cutoff) or not better.any(), trial
        kept = {*chosen.tolist(), *candidates[cuts.keep].tolist()}
        assert all(set(some) <= kept for some in subsets[better].tolist()), trial


@pytest.mark.parametrize("c", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("a", [0.0, 0.4])
@pytest.mark.parametrize("loss", [1 + 1e-9, 8.0, 1e9])
def test_the_envelope_is_below_the_loss_and_its_conjugate_above_in_exact_arithmetic(c, a, loss):
    rng = np.random.default_rng(0)
    low = float(np.exp(check.least_log(loss, c)))
    envelope = check.Envelope(c, a, low, 1 / low)
    points = np.exp(rng.uniform(np.log(low), -np.log(low), 5))
    slopes, f = envelope.line(np.sort(points)[None, ::-1], len(points), 1e-14)
    points = [low, 1 / low, *points.clip(low, 1 / low), *(points * (1 + 1e-7)).clip(low, 1 / low)]
    with localcontext() as context:
        context.prec = 50
        e = Decimal(1).exp()
        for t in map(Decimal, points):
            p = (Decimal(c) / 2 * t.ln()).exp()
            value = (p.exp() + (1 / p).exp()) / (2 * e) + Decimal(a) * t.ln()
            assert np.interp(float(t), envelope.t, envelope.v) - 2 * envelope.error <= value
            for slope, most in zip(map(Decimal, slopes[0].tolist()), map(Decimal, f[0].tolist()), strict=True):
                assert (slope + Decimal("1e-14") * abs(slope)) * t - value <= most


@pytest.mark.parametrize("seed", range(5))
def test_bounds_on_eigenvalues_hold_in_exact_arithmetic(seed):
    rng, k = np.random.default_rng(seed), 4
    A = rng.standard_normal((k, 5)) * 10.0 ** rng.uniform(-3, 2, (k, 1))
    A[-1] = A[0] + 1e-4 * A[-1]
    below, above = (np.exp(logs[0]) for logs in check.log_eigenvalues(A[None]))
    exact = [[Fraction(x) for x in row] for row in A.tolist()]
    for i, bound in [*enumerate(below * (1 - 1e-15)), *enumerate(above * (1 + 1e-15))]:
        # the number of negative pivots of AA' - bound I is that of the eigenvalues below bound (Sylvester)
        G = [[sum(map(mul, x, y)) for y in exact] for x in exact]
        for r in range(k):
            G[r][r] -= Fraction(float(bound))
        negative = 0
        for r in range(k):
            negative += G[r][r] < 0
            for q in range(r + 1, k):
                G[q] = [x - G[q][r] / G[r][r] * y for x, y in zip(G[q], G[r], strict=True)]
        assert negative <= i if bound <= below[i] else negative >= i + 1


def handmade(path, X, weights, kind, **claim):
    """A proof file of one node, the root."""
    header = {"format": check.FORMAT, "version": check.VERSION, "sha256": check.digest(X), "c": 1.0, "unit": None}
    columns, weights = np.arange(len(weights), dtype="<u2"), np.rint(65535 * np.array(weights)).astype("<u2")
    node = bytes([kind]) + np.array([len(weights)], "<u2").tobytes() + columns.tobytes() + weights.tobytes()
    content = json.dumps({**header, "include": [], "exclude": [], **claim}).encode() + b"\n" + node + check.END
    return not refused(path, X, content)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_file_made_by_hand_proves_that_the_second_best_is_best(k, tmp_path):
    rng = np.random.default_rng(k)
    for _ in range(8):
        X = rng.standard_normal((3, 5)) * rng.uniform(0.3, 1.2)
        subsets = np.array(list(itertools.combinations(range(5), k)))
        found = losses(X.T[subsets].mT, 1.0)
        best, second = found.argsort()[:2]
        claim = {
            "subset": subsets[second].tolist(),
            "loss": found[second],
            "bound": found[second] * (1 - 1e-10),
            "k": k,
        }
        weights = np.isin(np.arange(5), subsets[best]) * rng.uniform(0, 1, 5)
        for a, kind in itertools.product((0, 0.45, 1, 10), (check.CLOSED, check.ENUMERATED)):
            assert not handmade(tmp_path / "a.proof", X, weights, kind, a=a, **claim)


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    """A matrix and its proof."""
    X, path = load_wine().matrix(5)[:, ::4], tmp_path_factory.mktemp("proofs") / "wine.proof"
    ip.exact_search(X, proof=path)
    return X, path.read_bytes()


def refused(path, X, content):
    path.write_bytes(content)
    try:
        ip.check_proof(path, X)
    except RefusedError:
        return True
    return False


def changed(content, **values):
    first, _, rest = content.partition(b"\n")
    return json.dumps({**json.loads(first), **values}).encode() + b"\n" + rest


def test_a_claim_that_is_too_strong_is_refused(wine, tmp_path):
    X, content = wine
    path, header = tmp_path / "a.proof", json.loads(content.partition(b"\n")[0])
    assert not refused(path, X, content)
    loss, subset = header["loss"], header["subset"]
    others = [*subset[1:], next(p for p in range(X.shape[1]) if p not in subset)]
    for values in (
        {"bound": loss * (1 + 1e-9)}, {"bound": 2 * loss}, {"bound": float("nan")}, {"bound": "1"},
        {"loss": 0.9 * loss}, {"subset": others}, {"subset": subset[:-1]}, {"k": 4}, {"k": True}, {"k": 10**9},
        {"c": 2.0}, {"c": None},
        {"unit": "each"}, {"unit": -1}, {"include": [-1]}, {"exclude": subset[:1]}, {"a": [1]}, {"a": 1e300},
        {"sha256": "0"}, {"version": 2}, {"format": "other"},
    ):  # fmt: skip
        assert refused(path, X, changed(content, **values)), values


def test_a_header_made_by_hand_is_refused_or_true(wine, tmp_path):
    X, content = wine
    path, header = tmp_path / "a.proof", json.loads(content.partition(b"\n")[0])
    subset = header["subset"]
    others = [p for p in range(X.shape[1]) if p not in subset]
    for values in (
        *({"a": a} for a in (1e279, 5e-324, -0.0, 10**400, -1.0)), *({"c": c} for c in (0.05, 10, True, 1e-300)),
        *({"bound": bound} for bound in (0, -0.0, 1e279, 10**300, float("inf"))), {"loss": float("inf")},
        *({"unit": unit} for unit in (0, 1e-300, 1e279, True, [1], float("nan"), 2.0)), {"k": 10**18}, {"k": 0},
        {"subset": {}}, {"subset": "abcde"}, {"subset": subset[:1] * 5}, {"subset": [float(p) for p in subset]},
        {"include": others[:1]}, {"include": subset[:1]}, {"include": subset[:1] * 2}, {"include": subset},
        {"exclude": others}, {"exclude": others[:1] * 2}, {"shape": [10**9, 10**9]},
    ):  # fmt: skip
        if not refused(path, X, changed(content, **values)):
            assert header_of(path)["bound"] <= header["loss"], values
    first, _, rest = content.partition(b"\n")
    for start in (b', "bound": 100.0}', b', "k": 4}'):
        assert refused(path, X, first[:-1] + start + b"\n" + rest)
    for damaged in (
        b"[" * 100_000 + b"\n" + rest,
        b"{" + b" " * 1_000,
        b"\xff\xfe" + content,
        first + b"\n\7\0\0end\n",
    ):
        assert refused(path, X, damaged)


def test_other_data_and_damaged_files_are_refused(wine, tmp_path):
    X, content = wine
    path, start = tmp_path / "a.proof", content.index(b"\n") + 1
    assert refused(path, X + 1e-12, content)
    assert refused(path, X[:, ::-1], content)
    assert refused(path, X[:, :-1], content)
    for damaged in (content[:-1], content[:-5], content[: start + 20], content[:start], content[:9], b"", b"[]\n"):
        assert refused(path, X, damaged)
    assert refused(path, X, content + b"\0")
    closed = content[:start] + bytes([check.CLOSED]) + content[start + 1 :]  # the root
    assert refused(path, X, closed)


def mutations(content, X, path, count):
    """Random bytes are changed, inserted or left out; all that is then accepted must be true."""
    rng = np.random.default_rng(1)
    start = content.index(b"\n") + 1
    best = least_loss(X, 1.0, json.loads(content[:start]))
    for _ in range(count):
        changed = bytearray(content)
        for _ in range(int(rng.integers(1, 4))):
            at, value = int(rng.integers(0 if rng.random() < 0.3 else start, len(changed))), int(rng.integers(256))
            kind = rng.integers(3)
            changed[at : at + (kind != 1)] = b"" if kind == 2 else bytes([value])
        if not refused(path, X, bytes(changed)):
            header = header_of(path)
            assert header["bound"] <= best * (1 + 1e-9)
            assert header["loss"] == pytest.approx(best, rel=1e-9)


def test_a_damaged_file_takes_no_more_memory_than_it_needs(wine, tmp_path):
    X, content = wine
    start = content.index(b"\n") + 1
    tracemalloc.start()
    try:
        assert refused(tmp_path / "a.proof", X, content[: start + 1] + b"\xff\xff" + content[start + 3 :])
        assert refused(tmp_path / "a.proof", X, content[: start + 1] + b"\x2d\x00" + 10 * content)
        assert tracemalloc.get_traced_memory()[1] < 3e7
    finally:
        tracemalloc.stop()


def test_mutations_are_refused_or_change_no_claim(wine, tmp_path):
    mutations(wine[1], wine[0], tmp_path / "a.proof", 30)


@pytest.mark.long
def test_many_mutations_are_refused_or_change_no_claim(wine, tmp_path):
    mutations(wine[1], wine[0], tmp_path / "a.proof", 300)


def one_column_too_many(monkeypatch, best):
    cut = check.Tree.cut

    def planted(self, *given):
        found = cut(self, *given)
        found.bound += 1.0  # a column more is missing
        return found

    monkeypatch.setattr(check.Tree, "cut", planted)


def a_dropped_candidate(monkeypatch, best):
    cut = check.Tree.cut

    def planted(self, nodes, *given):
        found = cut(self, nodes, *given)
        found.keep &= nodes.candidates != best[0]
        return found

    monkeypatch.setattr(check.Tree, "cut", planted)


def a_wrong_sign(monkeypatch, best):
    cut = check.Tree.cut

    def planted(self, *given):
        found = cut(self, *given)
        found.bound += 2 * self.a * len(best)  # + a m in place of − a m
        return found

    monkeypatch.setattr(check.Tree, "cut", planted)


def a_wrong_envelope(monkeypatch, best):
    line = check.Envelope.line

    def planted(self, *given):
        slopes, f = line(self, *given)
        return slopes, f - 0.2

    monkeypatch.setattr(check.Envelope, "line", planted)


def a_cutoff_too_high(monkeypatch, best):
    monkeypatch.setattr("isopursuit.search.proof.writing.PROVED", -0.01)
    losses_of = check.Tree.losses

    def planted(self, subsets):
        low, high = losses_of(self, subsets)
        return (low, high) if len(low) == 1 and not self.nodes else (1.1 * low, high)

    monkeypatch.setattr(check.Tree, "losses", planted)


@pytest.mark.parametrize(
    "plant", [one_column_too_many, a_dropped_candidate, a_wrong_sign, a_wrong_envelope, a_cutoff_too_high]
)
def test_a_planted_error_of_the_writer_is_refused(plant, monkeypatch, tmp_path):
    X, path = load_wine().matrix(5), tmp_path / "wine.proof"
    best = ip.exact_search(X).indices.tolist()
    with monkeypatch.context() as planted:
        plant(planted, best)
        ip.exact_search(X, proof=path)
    assert path.exists()
    with pytest.raises(RefusedError):
        ip.check_proof(path, X)


def test_the_checker_is_one_file_that_needs_numpy_alone(wine, tmp_path):
    X, content = wine
    (tmp_path / "wine.proof").write_bytes(content)
    np.save(tmp_path / "x.npy", X)
    shutil.copy(check.__file__, tmp_path / "checker.py")
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    code = f"import sys, runpy; sys.path.append({str(tmp_path)!r}); sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    start = [sys.executable, "-I", "-S", "-c", code, "checker.py"]
    ran = subprocess.run([*start, "wine.proof", "x.npy"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("checked: loss")
    np.save(tmp_path / "x.npy", X + 1)
    ran = subprocess.run([*start, "wine.proof", "x.npy"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("refused: The data are not those of the proof")


def test_a_command_writes_a_proof_and_another_checks_it_for_the_same_table(tmp_path):
    table, path = tmp_path / "wine.csv", tmp_path / "wine.proof"
    table.write_text(load_wine().as_csv())
    for options in (
        ["--features", "-k", "4"],
        ["-k", "4", "--standardize"],
        ["--features", "-k", "3", "--unit", "none"],
    ):
        ran = commands.run("select", table, *options, "--drop-columns", "hue", "--proof", path)
        assert f"isopursuit check {path} FILE" in ran.stderr
        ran = commands.run("check", path, table)
        assert ran.returncode == 0, ran.stderr
        assert "proved optimal" in ran.stdout
    table.write_text(load_wine().as_csv().replace("14.23", "14.24"))
    ran = commands.run("check", path, table)
    assert ran.returncode == 1
    assert "SHA-256 differs" in ran.stderr


def test_select_writes_a_proof_in_any_unit_and_a_stopped_search_proves_its_bound(tmp_path):
    X, path = load_wine().matrix(5)[:, :60], tmp_path / "a.proof"
    for unit in ("each", "median", 2.0):
        picked = ip.select(X, unit=unit, proof=path)
        assert picked.method == "exact"
        assert ip.check_proof(path, X).subset == picked.indices.tolist()
    found = ip.exact_search(load_wine().matrix(8), node_limit=5, proof=path)
    checked = ip.check_proof(path, load_wine().matrix(8))
    assert found.status == "nodes"
    assert checked.bound == pytest.approx(found.lower_bound, rel=1e-9)
    assert "within" in str(checked)


def test_a_proof_that_cannot_be_written_is_refused_before_the_search(tmp_path):
    X, path = load_wine().matrix(4), tmp_path / "a.proof"
    with pytest.raises(ip.IsoPursuitError, match="method='exact'"):
        ip.select(X, method="greedy", proof=path)
    with pytest.raises(ip.IsoPursuitError, match="many points"):
        ip.exact_search([X, X], proof=path)
    with pytest.raises(ip.IsoPursuitError, match="in memory"):
        ip.exact_search(ip.as_source(X), proof=path, memory=100)
    with pytest.raises(ip.IsoPursuitError, match="standardized"):
        ip.exact_search(ip.as_source(X, standardize=True), proof=path)
    with pytest.raises(ip.IsoPursuitError, match="does not exist"):
        ip.exact_search(X, proof=tmp_path / "missing" / "a.proof")


def test_a_proof_that_was_stopped_is_incomplete(tmp_path):
    X, path = load_wine().matrix(10), tmp_path / "a.proof"
    found = ip.exact_search(X, proof=path, callback=lambda now: now.method == "writing the proof")
    assert "incomplete" in found.notes[-1]
    with pytest.raises(RefusedError, match="incomplete"):
        ip.check_proof(path, X)


@pytest.mark.parametrize("unit", [None, "each", "median", 2.0])
def test_columns_that_are_read_in_passes_are_loaded_for_a_proof(unit, tmp_path):
    X, path, file = load_wine().matrix(5), tmp_path / "a.proof", tmp_path / "x.npy"
    np.save(file, X)
    for source in (ip.as_source(X), np.load(file, mmap_mode="r")):
        found = ip.exact_search(source, unit=unit, proof=path, exclude=[3])
        assert ip.check_proof(path, X).subset == found.indices.tolist()


def test_a_hidden_basis_among_very_many_columns_is_proved(tmp_path):
    rng = np.random.default_rng(0)
    X, path = rng.standard_normal((6, 20_000)), tmp_path / "a.proof"
    X[:, 100:106] = np.linalg.qr(rng.standard_normal((6, 6)))[0] + 0.003 * rng.standard_normal((6, 6))
    assert ip.exact_search(ip.as_source(X), proof=path).indices.tolist() == list(range(100, 106))
    checked = ip.check_proof(path, X)
    assert checked.bound >= checked.loss * (1 - 1e-9)
