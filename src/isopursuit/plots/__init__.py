"""Pictures (extra `plot`). Each takes `ax` and returns it; matplotlib is imported only when one is drawn."""

from isopursuit.plots.manifolds import (
    PrincipalComponents,
    plot_coordinates,
    plot_dimension,
    plot_frequencies,
    plot_manifold,
    plot_spectra,
    principal_components,
)
from isopursuit.plots.molecules import molecule_svg, plot_molecule
from isopursuit.plots.points import plot_point_losses
from isopursuit.plots.replicates import plot_loss_ecdf, plot_paired_losses, plot_support_cardinalities
from isopursuit.plots.selections import (
    compared_columns,
    plot_gram,
    plot_length_curves,
    plot_lengths,
    plot_progress,
    plot_singular_values,
    plot_vectors,
)
from isopursuit.plots.torsions import plot_ramachandran, plot_torsions

__all__ = [
    "PrincipalComponents",
    "compared_columns",
    "molecule_svg",
    "plot_coordinates",
    "plot_dimension",
    "plot_frequencies",
    "plot_gram",
    "plot_length_curves",
    "plot_lengths",
    "plot_loss_ecdf",
    "plot_manifold",
    "plot_molecule",
    "plot_paired_losses",
    "plot_point_losses",
    "plot_progress",
    "plot_ramachandran",
    "plot_singular_values",
    "plot_spectra",
    "plot_support_cardinalities",
    "plot_torsions",
    "plot_vectors",
    "principal_components",
]
