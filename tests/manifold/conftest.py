"""Ethanol of the revised MD17 data, where it is at hand."""

import os
from pathlib import Path

import pytest

from isopursuit.manifold.trajectory import load_trajectory

DATA = Path(os.environ.get("ISOPURSUIT_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


@pytest.fixture(scope="session")
def rmd17():
    path = DATA / "rmd17_ethanol.npz"
    if not path.is_file():
        pytest.skip("rmd17_ethanol.npz is not at hand; ISOPURSUIT_DATA says where")
    return load_trajectory(path)
