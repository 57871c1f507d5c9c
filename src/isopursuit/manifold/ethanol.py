"""Ethanol at 500 K: frames that come with the package, MD17's or rMD17's file, or one's own.

The embedded frames were simulated for this package by tools/make_ethanol.py: 16 trajectories of 1,000 frames, GFN2-xTB.
The paper used MD17 (S. Chmiela and others, 2017 and 2018), which is larger, by a better theory, and not ours to pass
on.
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
LONGEST_BOND = 1.9  # Å: no bond of ethanol is stretched so far at any temperature it survives
BLOCK = 1 << 20  # bytes read at once


def load_ethanol(path: str | Path | None = None) -> Trajectory:
    """Ethanol at 500 K, its atoms in MD17's order with bonds `ETHANOL_BONDS`.

    Parameters
    ----------
    path : str or Path, optional
        A file of MD17, rMD17 or your own; the 16,000 frames that come with the package if not given.

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
            f"{trajectory.source} holds {''.join(trajectory.symbols)}, not ethanol as MD17 orders it, CCOHHHHHH."
        )
    i, j = np.array(ETHANOL_BONDS).T
    if np.linalg.norm(trajectory.positions[0, i] - trajectory.positions[0, j], axis=1).max() > LONGEST_BOND:
        raise FileError(f"{trajectory.source}: the atoms must be ordered as in MD17, with the bonds {ETHANOL_BONDS}.")
    return trajectory


def fetch_ethanol(path: str | Path, sha256: str, *, url: str = MD17_ETHANOL, timeout: float = 60.0) -> Trajectory:
    """Download ethanol from MD17 to `path`, unless it is there, and read it.

    Nothing is kept unless its checksum is right: a file appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        Where to keep the file, an .npz.
    sha256 : str
        The checksum that the file must have, as its publisher gives it or as you noted it the first time; the message
        of a mismatch says what came.
    url : str
        Where it is: MD17's own address if not given (555,092 frames).
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
        raise FileError(f"{what} has SHA-256 {came}, expected {expected}: it is damaged, or another file. {advice}")
