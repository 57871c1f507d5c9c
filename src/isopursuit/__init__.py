"""Pick the columns of a wide matrix that are as orthonormal as possible, with a proof.

Names are imported on first use, so that the command line and `import isopursuit` start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isopursuit._core.summary import Shown
from isopursuit.errors import IsoPursuitError, did_you_mean

if TYPE_CHECKING:
    from isopursuit.check import Checked, check_proof
    from isopursuit.loss.normalize import symmetric_normalize
    from isopursuit.loss.penalty import isometry_loss, log_isometry_loss, multitask_norm
    from isopursuit.manifold.coordinates import find_coordinates
    from isopursuit.manifold.result import Coordinates
    from isopursuit.pursuit.checking import check_pursuit
    from isopursuit.pursuit.inputs import PursuitProgress
    from isopursuit.pursuit.path import lasso_path
    from isopursuit.pursuit.programs import basis_pursuit, isometry_pursuit
    from isopursuit.results import Certificate, Effort, Pursuit, Search
    from isopursuit.search.incumbent import SearchProgress
    from isopursuit.search.searches import brute_search, exact_search, exchange_search, greedy_search
    from isopursuit.selection.audit import Audit, Swap, audit
    from isopursuit.selection.pointwise import PointwiseSelection, select_pointwise
    from isopursuit.selection.result import Alternative, Choice, Selection
    from isopursuit.selection.select import select
    from isopursuit.selection.stability import Stability, stability
    from isopursuit.sources.columns import as_source

__all__ = [
    "Alternative",
    "Audit",
    "Certificate",
    "Checked",
    "Choice",
    "Coordinates",
    "Effort",
    "IsoPursuitError",
    "PointwiseSelection",
    "Pursuit",
    "PursuitProgress",
    "Search",
    "SearchProgress",
    "Selection",
    "Stability",
    "Swap",
    "as_source",
    "audit",
    "basis_pursuit",
    "brute_search",
    "check_proof",
    "check_pursuit",
    "exact_search",
    "exchange_search",
    "find_coordinates",
    "greedy_search",
    "isometry_loss",
    "isometry_pursuit",
    "lasso_path",
    "log_isometry_loss",
    "multitask_norm",
    "select",
    "select_pointwise",
    "stability",
    "symmetric_normalize",
]

_HOMES = {
    "check": ("Checked", "check_proof"),
    "loss.penalty": ("isometry_loss", "log_isometry_loss", "multitask_norm"),
    "manifold.coordinates": ("find_coordinates",),
    "manifold.result": ("Coordinates",),
    "loss.normalize": ("symmetric_normalize",),
    "pursuit.checking": ("check_pursuit",),
    "pursuit.path": ("lasso_path",),
    "pursuit.programs": ("basis_pursuit", "isometry_pursuit"),
    "pursuit.inputs": ("PursuitProgress",),
    "results": ("Certificate", "Effort", "Pursuit", "Search"),
    "search.incumbent": ("SearchProgress",),
    "search.searches": ("brute_search", "exact_search", "exchange_search", "greedy_search"),
    "selection.audit": ("Audit", "Swap", "audit"),
    "selection.pointwise": ("PointwiseSelection", "select_pointwise"),
    "selection.result": ("Alternative", "Choice", "Selection"),
    "selection.select": ("select",),
    "selection.stability": ("Stability", "stability"),
    "sources.columns": ("as_source",),
}


def _draw(result: Any, **options: Any) -> str:
    """The page of a result, drawn by the last layer, which is imported on first use."""
    from isopursuit.show._report import page

    return page(result, **options)


Shown.draw = staticmethod(_draw)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, and read `__version__` from the installed package's metadata."""
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is not None:
        found = globals()[name] = getattr(import_module(f"isopursuit.{home}"), name)
        return found
    if name == "__version__":
        from importlib.metadata import version

        return version("isopursuit")
    raise AttributeError(f"module 'isopursuit' has no attribute {name!r}. {did_you_mean(name, __all__)}".rstrip())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
