"""Pick the columns of a wide matrix that are as orthonormal as possible, with a proof."""

from isopursuit.errors import IsoPursuitError
from isopursuit.loss import isometry_loss, log_isometry_loss, multitask_norm
from isopursuit.normalize import symmetric_normalize
from isopursuit.pursuit.programs import basis_pursuit, isometry_pursuit, lasso_path
from isopursuit.results import Certificate, Pursuit, Search, Selection

__all__ = [
    "Certificate",
    "IsoPursuitError",
    "Pursuit",
    "Search",
    "Selection",
    "basis_pursuit",
    "isometry_loss",
    "isometry_pursuit",
    "lasso_path",
    "log_isometry_loss",
    "multitask_norm",
    "symmetric_normalize",
]
