"""Ethanol at 500 K: frames that come with the package, from a file of MD17 or rMD17, or from your own file.

The embedded frames were simulated for this package by tools/make_ethanol.py: 16 trajectories of 1,000 frames, GFN2-xTB.
The paper used MD17 (S. Chmiela and others, 2017 and 2018), which is larger and computed with a better theory, but may
not be redistributed here.
"""

from __future__ import annotations

import hashlib
import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from isopursuit.errors import FileError, ParameterError
from isopursuit.manifold.trajectory import Trajectory, load_trajectory

ETHANOL_NUMBERS = (6, 6, 8, 1, 1, 1, 1, 1, 1)  # C of CH2, C of CH3, O, then the hydrogens of CH2, CH3 and OH
ETHANOL_BONDS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8))
MD17_ETHANOL = "http://www.quantum-machine.org/gdml/data/npz/md17_ethanol.npz"
LONGEST_BOND = 1.9  # Å; longer than any bond of ethanol at any temperature at which it is stable
BLOCK = 1 << 20  # bytes read at once


def load_ethanol(path: str | Path | None = None) -> Trajectory:
    """Ethanol at 500 K, with atoms in the order of MD17 and bonds `ETHANOL_BONDS`.

    Parameters
    ----------
    path : str or Path, optional
        A file of MD17, rMD17 or your own. Default: the 16,000 frames that come with the package.

    Examples
    --------
    >>> load_ethanol()
    Trajectory(16000 frames of 9 atoms CCOHHHHHH, ethanol.npz)
    """
    if path is None:
        with as_file(files("isopursuit") / "data" / "ethanol.npz") as embedded:
            return load_trajectory(embedded)
    trajectory = load_trajectory(path)
    if trajectory.numbers.tolist() != list(ETHANOL_NUMBERS):
        raise FileError(
            f"{trajectory.source} contains {''.join(trajectory.symbols)}, not ethanol in the order of MD17, CCOHHHHHH."
        )
    i, j = np.array(ETHANOL_BONDS).T
    if np.linalg.norm(trajectory.positions[0, i] - trajectory.positions[0, j], axis=1).max() > LONGEST_BOND:
        raise FileError(f"{trajectory.source}: the atoms must be ordered as in MD17, with the bonds {ETHANOL_BONDS}.")
    return trajectory


def fetch_ethanol(path: str | Path, sha256: str, *, url: str = MD17_ETHANOL, timeout: float = 60.0) -> Trajectory:
    """Download ethanol from MD17 to `path`, unless the file exists, and read it.

    The file is written completely or not at all, and only if its checksum is correct.

    Parameters
    ----------
    path : str or Path
        Where to keep the file, an .npz.
    sha256 : str
        The expected checksum, from the publisher or from your first download. The message about a mismatch shows the
        actual one.
    url : str
        The address. Default: that of MD17 (555,092 frames).
    timeout : float
        Seconds to wait for an answer.
    """
    path = Path(path)
    if not path.exists():
        _download(url, path, sha256, timeout)
    else:
        with path.open("rb") as file:
            came = hashlib.file_digest(file, "sha256").hexdigest()
        _check_digest(came, sha256, str(path), "Remove the file to download it again.")
    return load_ethanol(path)


def _download(url: str, path: Path, sha256: str, timeout: float) -> None:
    from http.client import HTTPException
    from urllib.request import urlopen

    if urlsplit(url).scheme not in ("http", "https"):
        raise ParameterError(f"url={url!r} is not an http or https address.")
    digest = hashlib.sha256()
    partial = None
    try:
        with (
            urlopen(url, timeout=timeout) as answer,
            tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".part", delete=False) as file,
        ):
            partial = Path(file.name)
            while block := answer.read(BLOCK):
                digest.update(block)
                file.write(block)
        _check_digest(digest.hexdigest(), sha256, url, "Nothing was kept.")
        partial.replace(path)
    except FileError:
        raise
    except (OSError, HTTPException) as error:
        raise FileError(f"{url} could not be fetched to {path}: {error}. Download it by hand, or try again.") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _check_digest(came: str, expected: str, what: str, advice: str) -> None:
    if came != expected.lower():
        raise FileError(f"{what} has SHA-256 {came}, expected {expected}: it is damaged, or a different file. {advice}")
