"""The MiniLM token dictionary, 384 × 30,522, scaled to median length 1: time to gap 1e-8 in products X Xᵀ.

python benchmarks/tokens.py
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import numpy as np

import isopursuit as ip
from isopursuit.embedding import token_matrix


def main():
    X, words = token_matrix()
    X = np.ascontiguousarray(X / np.median(np.linalg.norm(X, axis=0)))
    X @ X.T
    product = min(timed(lambda: X @ X.T) for _ in range(5))
    result = []
    seconds = timed(lambda: result.append(ip.isometry_pursuit(X, tol=1e-8)))
    found = result[0]
    print(f"{X.shape[0]} × {X.shape[1]}: X Xᵀ {product:.3f} s, load {os.getloadavg()[0]:.1f}")
    gap = found.certificate.gap
    print(f"pursuit {seconds:.1f} s = {seconds / product:.0f} products, gap {gap:.1e} ({found.status})")
    heaviest = found.support[np.argsort(-found.weights[found.support])]
    print(f"{len(found.support)} tokens with weight; the heaviest: {' '.join(words[i] for i in heaviest[:40])}")


def timed(function):
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
