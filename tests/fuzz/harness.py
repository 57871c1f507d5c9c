"""What one fuzz run reports, and how a failing problem is printed so that it can be pasted and run.

A check is a module with `run(seed) -> Outcome`. The seed decides everything about the problem: its family, its size,
its entries and the arguments of the call. `python -m fuzz` (with tests/ on the path, as `make fuzz` does) runs them
in turn on consecutive seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """One problem: its family, what the library answered ("optimal", "precision", "refused", ...), what was wrong with
    the answer (empty where nothing was), and a script that runs the same call.
    """

    family: str
    verdict: str
    failures: tuple[str, ...] = ()
    script: str = field(default="", repr=False)


def script(call: str, **values: Any) -> str:
    """Python source that defines the values exactly and then runs the call."""
    lines = ["import numpy as np", "import isopursuit as ip", ""]
    lines += [f"{name} = {literal(value)}" for name, value in values.items()]
    return "\n".join([*lines, call, ""])


def literal(value: Any) -> str:
    """Source text for a value; arrays keep every bit, whatever their entries."""
    if isinstance(value, np.ndarray):
        entries = value.ravel()
        if np.array_equal(entries, entries.astype(np.int64)) and np.abs(entries).max(initial=0) < 2**31:
            body = f"np.array({value.astype(np.int64).tolist()}, dtype=float)"
            return body if value.dtype == np.float64 else f"{body}.astype(np.{value.dtype})"
        data = np.ascontiguousarray(value).tobytes().hex()
        return f'np.frombuffer(bytes.fromhex("{data}"), dtype=np.{value.dtype}).reshape{value.shape}'
    if isinstance(value, list):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    return repr(value)
