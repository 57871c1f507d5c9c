"""Table 1 of the paper, by the authors' own recipe for replicates."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

import isopursuit as ip
from isopursuit.datasets import load_iris, load_wine


@pytest.mark.parametrize(
    ("data", "D", "P", "greedy", "two_stage", "support", "p_value", "worse", "equal"),
    [
        (load_iris(), 4, 75, (13.8, 7.3), (6.9, 1.4), (7, 1), "2.4e-05", 0.96, 0.0),
        (load_wine(), 6, 89, (7.7, 0.3), (7.6, 0.3), (13, 2), "6.3e-04", 0.56, 0.44),
    ],
)
def test_table_1(data, D, P, greedy, two_stage, support, p_value, worse, equal):
    first, second, sizes = [], [], []
    for i in range(25):
        X = data.replicate(i, D)
        assert X.shape == (D, P)
        picked = ip.select(X)
        assert picked.search.optimal
        first.append(ip.greedy_search(X).loss)
        second.append(picked.loss)
        sizes.append(len(picked.pursuit.support))
    first, second, sizes = np.array(first), np.array(second), np.array(sizes)

    def printed(values, digits=1):
        return round(values.mean(), digits), round(values.std(ddof=1), digits)

    assert printed(first) == greedy
    assert printed(second) == two_stage
    assert printed(sizes, 0) == support
    assert f"{ttest_rel(first, second).pvalue:.1e}" == p_value
    assert (first > second + 1e-9).mean() == pytest.approx(worse)
    assert (abs(first - second) <= 1e-9).mean() == pytest.approx(equal)


def test_the_global_optimum_beats_the_papers_answer_on_iris():
    X = load_iris().replicate(0)
    assert ip.greedy_search(X).loss == pytest.approx(9.5776, abs=5e-5)
    assert ip.select(X).loss == pytest.approx(6.5420, abs=5e-5)
    assert ip.exact_search(X).loss == pytest.approx(5.7636, abs=5e-5)
