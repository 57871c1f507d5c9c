from dataclasses import replace

import numpy as np
import pytest
from pages import Reader

import isopursuit as ip
from isopursuit._core.summary import table
from isopursuit._core.text import loss_text
from isopursuit.data import load_iris

HOSTILE = "<script>alert(1)</script>\" onmouseover='x'"


@pytest.fixture(scope="module")
def X():
    return load_iris().matrix()


def test_a_selection_shows_its_verdict_and_its_columns(X):
    picked = ip.select(X, method="two-stage", labels=[f"iris {i}" for i in range(150)])
    page = Reader(picked._repr_html_())
    text = " ".join(page.words)
    assert picked.verdict in text
    assert "proved optimal" in text
    for choice in picked.choices:
        assert choice.label in page.words
        assert f"{choice.length:.3f}" in page.words


def test_a_search_that_ran_out_of_time_says_how_far_it_may_be(X):
    search = replace(ip.exact_search(X), status="time", loss=100.0, lower_bound=96.9)
    assert "within 3.1 % of optimal (time)" in search._repr_html_()
    for useless in (-np.inf, 4.0, 49.0):
        assert "no useful bound yet (time)" in replace(search, lower_bound=useless)._repr_html_()
        assert " %" not in replace(search, lower_bound=useless).verdict
    assert replace(search, lower_bound=51.0).verdict == "within 49 % of optimal (time)"
    assert replace(search, status="gap", lower_bound=10.0).verdict == "within 90 % of optimal (gap)"  # as was asked


def test_a_large_loss_is_shown_as_a_power_of_e_everywhere(X):
    search = replace(ip.exact_search(X), status="time", loss=5.9e11, log_loss=np.log(5.9e11), lower_bound=4.1e11)
    picked = replace(ip.select(X), search=search, loss=search.loss, log_loss=search.log_loss)
    for text in (str(search), search._repr_html_(), str(picked), picked._repr_html_()):
        assert "e^27.10" in text
        assert "e+11" not in text
    assert "e^26.74" in search._repr_html_()  # the bound
    assert (loss_text(1e6), loss_text(1.01e6), loss_text(-3.0)) == ("1000000", "e^13.83", "-3")
    assert loss_text(replace(search, loss=np.inf, log_loss=2000.0)) == "e^2000.00"


def test_a_pursuit_shows_its_certificate_and_its_heaviest_columns(X):
    pursuit = ip.isometry_pursuit(X)
    assert ": proved optimal" in Reader(pursuit._repr_html_()).words
    loose = replace(pursuit, certificate=replace(pursuit.certificate, dual=0.9 * pursuit.objective))
    assert ": proved within 10 % of the optimum" in Reader(loose._repr_html_()).words
    wrong = replace(pursuit, certificate=replace(pursuit.certificate, residual=1.0))
    assert ": nothing is proved: the constraint is not met" in Reader(wrong._repr_html_()).words
    assert f"largest weights: {pursuit.weights.argmax()} {pursuit.weights.max():.4g}, " in pursuit._repr_html_()
    assert str(pursuit.certificate) in str(pursuit)


def test_labels_are_only_text_everywhere(X):
    labels = [f"{HOSTILE} {i}" for i in range(150)]
    picked = ip.select(X, method="two-stage", labels=labels)
    for result in (picked, picked.search, picked.pursuit, ip.exact_search(X, labels=labels)):
        page = Reader(result._repr_html_())
        assert "script" not in page.tags
        assert set(page.attributes) <= {"style", "title", "colspan"}
        assert any(HOSTILE in word for word in page.words)


def test_lone_surrogates_can_be_written(X):
    picked = ip.select(X, labels=[f"\udcff{i}" for i in range(150)])
    assert picked._repr_html_().encode("utf-8")


def test_a_large_answer_stays_small():
    assert "and 80 more" in table(("a",), [(i,) for i in range(100)])


def test_no_colour_of_text_or_page_is_assumed(X):
    text = ip.select(X)._repr_html_()
    assert "color:" not in text


def test_a_pursuit_says_its_unit(X):
    columns = ip.as_source(X, unit="each")
    found = ip.isometry_pursuit(columns)
    assert found.unit == found.as_dict()["unit"] == "each column has length 1"
    assert "unit: each column has length 1" in str(found)
    assert ip.isometry_pursuit(X).unit == ip.basis_pursuit(X).unit == "as given"
