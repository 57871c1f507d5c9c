"""What docs/cluster.md shows is run."""

import doctest
from pathlib import Path

import pytest

pytest.importorskip("distributed")


@pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and closed connections
def test_the_page_on_clusters_runs():
    page = Path(__file__).parents[2] / "docs" / "cluster.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
