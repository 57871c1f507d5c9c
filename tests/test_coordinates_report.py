"""The report of coordinates: ethanol's torsions, and functions of points that are no molecule."""

import html
import re
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from manifolds import clifford_torus
from pages import Reader

import isopursuit as ip
from isopursuit.errors import PackageError
from isopursuit.molecules import Trajectory, load_ethanol
from isopursuit.show._coordinates import coordinates_page

HOSTILE = "</script><script>alert(1)</script>\" ' --> </title> $\\frac{ &amp;"


@cache
def whole():
    ethanol = load_ethanol()
    return Trajectory(ethanol.positions[::4], ethanol.numbers, "ethanol.npz")


def find_ethanol(D, aggregate):
    frames = np.arange(0, 4000, 200)
    options = {"dictionary": "bonds", "groups": range(12), "frames": frames, "neighbours": 100, "aggregate": aggregate}
    found = ip.find_coordinates(whole(), D, atoms="all", **options)
    unsure = np.isin(frames, (600, 1400))
    return replace(found, checks=replace(found.checks, undetermined=unsure, angles=np.where(unsure, 33.0, 5.0)))


@pytest.fixture(scope="module")
def ethanol():
    return find_ethanol(2, "trimmed")


@pytest.fixture(scope="module")
def ethanol_page(ethanol):
    return coordinates_page(ethanol, command="isopursuit coordinates ethanol.npz")


def find_torus():
    manifold = clifford_torus(1500)
    points, functions = manifold.points, manifold.dictionary
    return ip.find_coordinates(
        points, 2, dictionary=functions, frames=np.arange(0, 1500, 50), neighbours=40, aggregate="sum"
    )


@pytest.fixture(scope="module")
def torus():
    return find_torus()


def words(page):
    return re.sub(r"\s+", " ", " ".join(Reader(page).words))


def captions(page):
    return re.findall(r"<figcaption>(.*?)</figcaption>", page)


def test_it_says_what_was_asked_and_what_was_picked(ethanol, ethanol_page):
    text = words(ethanol_page)
    for said in (
        "2 of 12 functions of ethanol.npz",
        "4,000 frames of 9 atoms (CCOHHHHHH)",
        "100 for each tangent space",
        "trimmed 0.9: mean over the best 18 of 20 frames",
        ethanol.unit,
        f"loss per frame {ethanol.selection.loss:.4g}",
        f"Good coordinates: loss per direction {ethanol.selection.loss / 2:.4g} (ideal 1); this is proved to be",
        "need not be the slowest",
    ):
        assert said in text
    for label, row in zip(ethanol.labels, ethanol.atoms, strict=True):
        assert f"{label} {'–'.join(str(atom + 1) for atom in row)}" in text
    for choice in ethanol.selection.choices:
        assert f"{choice.length:.4g}" in text
        assert str(choice.replacement) in text


def test_the_worst_frames_are_named_with_their_losses(ethanol, ethanol_page):
    table = ethanol_page[ethanol_page.index("frames with the highest losses") :]
    first = words(re.search(r"<tbody>(<tr>.*?</tr>)", table, re.DOTALL)[1])
    worst = int(np.argmax(ethanol.point_losses))
    for said in (str(ethanol.points[worst]), f"{ethanol.point_losses[worst]:.4g}"):
        assert said in first
    numbers = [f"{f(ethanol.point_losses):.4g}" for f in (np.min, np.max)]
    assert re.search(rf"lowest, median, highest {numbers[0]}, \S+, {numbers[1]}", words(ethanol_page))


def test_undetermined_frames_are_listed_with_the_reason(ethanol, ethanol_page):
    table = words(ethanol_page[ethanol_page.index("<details>") :].split("</details>")[0] + "</details>")
    assert "2 of 20, included in the loss" in words(ethanol_page)
    for number in (600, 1400):
        assert re.search(rf"\b{number}\b.*leave a direction uncertain by 33°", table)


def test_every_picture_is_in_the_page_and_has_words(ethanol, ethanol_page):
    named = captions(ethanol_page)
    first, second = ethanol.labels
    assert len(named) == 6 == ethanol_page.count('<svg role="img" aria-label="')
    for caption in named:
        assert f'aria-label="{caption}"' in ethanol_page
    for said in (
        f"The molecule with the picked functions: {first}, {second}.",
        "The loss of the picked functions at each frame, from the lowest to the highest",
        f"coloured by {first}.",
        f"coloured by {second}.",
        f"All 4,000 frames in the plane of {first} and {second}.",
        "The variances of the neighbourhoods",
    ):
        assert sum(said in caption for caption in named) == 1
    ids = re.findall(r'\bid="([^"]*)"', ethanol_page)
    assert len(set(ids)) == len(ids)
    assert len(ethanol_page) < 2e6  # thousands of points are images


def test_losses_are_those_of_one_frame_also_where_their_sum_was_minimized():
    found = find_ethanol(3, "sum")
    page = coordinates_page(found)
    text = words(page)
    mean = found.selection.loss / 20
    shown = f"{mean:.4g}" if mean < 1e6 else f"e^{np.log(mean):.2f}"
    assert f"loss per frame {shown} ideal 3" in text.replace("\n", " ")
    assert "sum: mean over 20 frames" in text
    assert not re.search(r"(?<![\d.])\d{8}", words(re.sub(r"(?s)<(style|script|svg)\b.*?</\1>", "", page)))
    planes = [caption for caption in captions(page) if "in the plane of" in caption]
    assert len(planes) == 3  # every pair of three


def test_without_matplotlib_it_works_and_says_so(ethanol, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = coordinates_page(ethanol)
    assert "<svg" not in page
    assert "There are no pictures. Drawing needs matplotlib. Install isopursuit[plot]" in page
    assert ethanol.labels[0] in page


def test_without_jinja_it_says_what_to_install(ethanol, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(PackageError, match=r"Install isopursuit\[report\]"):
        coordinates_page(ethanol)


def test_functions_of_points_have_a_page_without_molecule_or_angles(torus):
    page = coordinates_page(torus, title="A torus")
    text = words(page)
    for said in ("A torus", "1,500 points in 4 dimensions", "mean over 30 points"):
        assert said in text
    named = captions(page)
    assert not any("molecule" in caption or "frame" in caption for caption in named)
    assert sum(caption.endswith(("first arc.", "second arc.")) for caption in named) == 3
    assert "Ramachandran" not in page
    assert "undetermined points none" in text


def test_functions_whose_values_are_known_at_some_points_or_nowhere(torus):
    some = replace(torus, dictionary=torus.dictionary.take(torus.points))
    assert any("All 30 points in the plane" in caption for caption in captions(coordinates_page(some)))
    gradients = replace(torus, dictionary=replace(torus.dictionary, values=None))
    page = coordinates_page(gradients)
    assert "only their gradients" in page
    assert any("loss of the picked functions" in caption for caption in captions(page))


def test_compared_dimensions_are_shown_with_their_losses():
    manifold = clifford_torus(1500, distractors=6)
    found = ip.find_coordinates(manifold.points, [1, 2], dictionary=manifold.dictionary, frames=30)
    page = coordinates_page(found)
    assert "D = 2 is recommended" in words(page)
    assert "1 of 30 undetermined" not in words(page)
    for row in found.scan.rows:
        assert f"{row.evidence.same} of 10" in words(page)
    assert any("loss per direction for each dimension" in caption for caption in captions(page))


def test_it_says_how_to_repeat_it(ethanol, ethanol_page, torus):
    text = words(ethanol_page)
    assert "isopursuit coordinates ethanol.npz" in text
    for name in ("isopursuit", "numpy", "scipy", "matplotlib", "python", "platform", np.__version__):
        assert name in text
    assert "find_coordinates(data, D=2, dictionary=dictionary," in words(coordinates_page(torus))


@pytest.mark.parametrize(
    "options",
    [
        {"D": 2, "atoms": "all", "frames": 30, "seed": 3, "unit": "median"},
        {"D": 1, "frames": 15, "dictionary": "bonds", "atoms": [0, 1, 2, 5, 8], "aggregate": 2 / 3},
    ],
)
def test_the_printed_call_gives_the_same_coordinates(options, tmp_path):
    file = tmp_path / "my ethanol.npz"
    np.savez(file, R=whole().positions, z=whole().numbers)
    found = ip.find_coordinates(file, **options)
    call = html.unescape(re.findall(r"<code>(.*?)</code>", coordinates_page(found), re.DOTALL)[-1])
    again = eval(call, {"isopursuit": ip})
    assert again.labels == found.labels
    assert again.loss_per_point == found.loss_per_point
    assert again.points.tolist() == found.points.tolist()


def test_nothing_from_outside_can_load(ethanol_page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', ethanol_page)[1]
    assert policy.startswith("default-src 'none';")
    assert re.search(r"script-src 'sha256-[\w+/]+='", policy)
    assert "http" not in re.sub(r'http-equiv|"data:[^"]*"', "", ethanol_page)
    for link in re.findall(r'(?:src|href)="([^"]*)"', ethanol_page):
        assert link.startswith(("#", "data:"))


def test_labels_are_only_text_everywhere(torus):
    labels = tuple(f"{HOSTILE} {i}" for i in range(len(torus.matrices.labels)))
    matrices = replace(torus.matrices, labels=labels)
    picked = ip.select(matrices, method="exact")
    hostile = replace(torus, matrices=matrices, selection=picked, notes=(HOSTILE,))
    page = Reader(coordinates_page(hostile, title=HOSTILE, command=HOSTILE))
    assert page.tags.count("script") == 1
    assert page.tags.count("title") == 1
    assert not [name for name in page.attributes if name.startswith("on")]
    assert "".join(page.words).count(HOSTILE) > 8


def test_the_page_is_written_to_a_file(torus, tmp_path):
    page = torus.to_html(tmp_path / "torus.html", title="A torus")
    assert "<h1>A torus</h1>" in page
    assert (tmp_path / "torus.html").read_text(encoding="utf-8") == page


def test_a_proof_is_no_praise(ethanol):
    """Two torsions about one bond: proved to be the best of one pair, and no coordinates."""
    rows = [[5, 1, 0, 2], [6, 1, 0, 2]]
    found = ip.find_coordinates(whole(), 2, atoms="all", frames=ethanol.points, neighbours=100, dictionary=rows)
    page = coordinates_page(found)
    verdict = re.search(r'<p class="(verdict[^"]*)">(.*?)</p>', page)
    assert verdict[1] == "verdict"  # not green
    assert verdict[2].startswith("Not coordinates: loss per direction ")
    assert verdict[2].endswith("this is proved to be the best subset.")
    good = re.search(r'<p class="(verdict[^"]*)">', coordinates_page(ethanol))
    assert good[1] == "verdict proved"
