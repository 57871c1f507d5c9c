"""Sources as parameters of tests; those of an optional package have the marker `needs`."""

import pytest

PACKAGES = {"tensor": "torch", "torch": "torch", "dask": "dask.array", "jax": "jax"}


def marked(kinds):
    """The kinds as parameters; the first word of a kind says which package it needs."""
    packages = {kind: PACKAGES.get(kind.split()[0]) for kind in kinds}
    return [
        pytest.param(kind, marks=pytest.mark.needs(package)) if package else kind for kind, package in packages.items()
    ]
