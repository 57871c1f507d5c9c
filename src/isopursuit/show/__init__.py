"""Pictures (extra `plot`). Each takes `ax` and returns it; matplotlib is imported only when one is drawn."""

from isopursuit.show.manifold_plots import (
    plot_coordinates,
    plot_dimension,
    plot_manifold,
    plot_molecule,
    plot_point_losses,
    plot_spectra,
)
from isopursuit.show.plots import (
    plot_gram,
    plot_lengths,
    plot_progress,
    plot_singular_values,
    plot_stability,
    plot_vectors,
)

__all__ = [
    "plot_coordinates",
    "plot_dimension",
    "plot_gram",
    "plot_lengths",
    "plot_manifold",
    "plot_molecule",
    "plot_point_losses",
    "plot_progress",
    "plot_singular_values",
    "plot_spectra",
    "plot_stability",
    "plot_vectors",
]
