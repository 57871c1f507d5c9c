"""The searches' own tests are about the trees: the shortcut for few subsets, which is brute force, is off."""

import pytest

from isopursuit.search import exact


@pytest.fixture(autouse=True)
def _no_shortcut(monkeypatch):
    monkeypatch.setattr(exact, "FEW_SUBSETS", 0)
