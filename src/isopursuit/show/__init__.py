"""Pictures (extra `plot`). Each takes `ax` and returns it; matplotlib is imported only when one is drawn."""

from isopursuit.show._manifold_plots import (
    PrincipalComponents,
    plot_coordinates,
    plot_dimension,
    plot_frequencies,
    plot_manifold,
    plot_spectra,
    principal_components,
)
from isopursuit.show._molecule_plots import molecule_svg, plot_molecule
from isopursuit.show._plots import (
    plot_gram,
    plot_lengths,
    plot_progress,
    plot_singular_values,
    plot_vectors,
)
from isopursuit.show._point_plots import plot_point_losses
from isopursuit.show._torsion_plots import plot_ramachandran, plot_torsions

__all__ = [
    "PrincipalComponents",
    "molecule_svg",
    "plot_coordinates",
    "plot_dimension",
    "plot_frequencies",
    "plot_gram",
    "plot_lengths",
    "plot_manifold",
    "plot_molecule",
    "plot_point_losses",
    "plot_progress",
    "plot_ramachandran",
    "plot_singular_values",
    "plot_spectra",
    "plot_torsions",
    "plot_vectors",
    "principal_components",
]
