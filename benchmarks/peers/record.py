"""The durable record: one line of JSON for the machine, each library and each row, written as it comes."""

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from isopursuit.loss.penalty import log_isometry_loss

from .problems import SIZES, Problem

RECORD = Path(__file__).parents[1] / "recorded" / "peers.jsonl"


@dataclass(frozen=True)
class Row:
    """What one method gave on one problem; without columns, `error` says why."""

    data: str
    rows: int
    k: int
    P: int
    scaling: str
    method: str
    error: str = ""
    indices: tuple[int, ...] = ()
    log_loss: float = math.inf
    log_volume: float = -math.inf
    smallest: float = 0.0
    largest: float = math.nan
    coherence: float = 1.0
    proof: str = "none"
    seconds: float = math.nan
    peak_mb: float = math.nan

    @property
    def problem(self) -> Problem:
        return Problem(self.data, self.rows, self.k, self.P, self.scaling)

    @property
    def loss(self) -> float:
        return math.exp(self.log_loss) if self.log_loss < 700 else math.inf


def judge(X: np.ndarray, indices: list[int]) -> dict[str, float]:
    """The one judge for everybody: l_1 and its relatives from the singular values of the matrix X[:, indices]."""
    picked = np.asarray(X[:, indices])
    s = np.linalg.svd(picked, compute_uv=False)
    unit = picked / np.linalg.norm(picked, axis=0)
    cosines = np.abs(unit.T @ unit) - np.eye(len(indices))
    volume = float(np.log(s).sum()) if s[-1] > 0 else -math.inf
    log_loss = log_isometry_loss(picked) if s[-1] > 0 else math.inf
    return {
        "log_loss": float(log_loss),
        "log_volume": volume,
        "smallest": float(s[-1]),
        "largest": float(s[0]),
        "coherence": float(cosines.max()),
    }


def row(problem: Problem, method: str, answer: dict[str, Any], X: np.ndarray) -> Row:
    """A worker's answer, judged. Of a random method's runs the one of median loss is kept."""
    key = {**problem._asdict(), "method": method}
    if "error" in answer:
        return Row(**key, error=answer["error"])
    judged = []
    for indices, proof in answer["runs"]:
        if len(set(indices)) != problem.k or len(indices) != problem.k:
            return Row(**key, error=f"gave {len(set(indices))} columns", seconds=answer["seconds"])
        judged.append((judge(X, indices), indices, proof))
    judged.sort(key=lambda one: one[0]["log_loss"])
    values, indices, proof = judged[len(judged) // 2]
    timing = {"seconds": answer["seconds"], "peak_mb": answer["peak_mb"]}
    return Row(**key, indices=tuple(sorted(indices)), proof=proof, **values, **timing)


@dataclass(frozen=True)
class Record:
    """All that was written, read back."""

    environment: dict[str, Any]
    libraries: dict[str, dict[str, Any]]
    first_calls: dict[str, dict[str, float]]
    rows: tuple[Row, ...]
    minutes: float = 0.0  # 0 where the run was not finished

    @cached_property
    def _by_problem(self) -> dict[Problem, dict[str, Row]]:
        found: dict[Problem, dict[str, Row]] = {}
        for one in self.rows:
            found.setdefault(one.problem, {})[one.method] = one
        return found

    def at(self, problem: Problem) -> dict[str, Row]:
        """The rows of one problem, by method."""
        return self._by_problem[problem]

    def problems(self) -> list[Problem]:
        """In the order of the data, k and P."""
        return list(self._by_problem)


def write(file: Path, kind: str, content: dict[str, Any] | Row) -> None:
    """Append a line and see it to the disk."""
    if isinstance(content, Row):
        plain = {field.name: field.default for field in fields(Row)}
        content = {name: value for name, value in asdict(content).items() if value != plain[name]}
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"kind": kind, **content}) + "\n")
        stream.flush()


def drop(file: Path, methods: Collection[str], data: Collection[str]) -> None:
    """Remove the rows of these methods on these data sets (all if none is named)."""
    kept = [
        line
        for line in _lines(file)
        if line["kind"] != "row" or line["method"] not in methods or (data and line["data"] not in data)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")


def read(file: Path = RECORD) -> Record:
    """Rows in the order of the problems and methods, whatever the order in which they came."""
    environment: dict[str, Any] = {}
    libraries: dict[str, dict[str, Any]] = {}
    first_calls: dict[str, dict[str, float]] = {}
    rows: list[Row] = []
    minutes = 0.0
    for content in _lines(file):
        kind = content.pop("kind")
        if kind == "environment":
            environment = content
        elif kind == "library":
            libraries[content["name"]] = content
        elif kind == "first calls":
            first_calls[content["name"]] = content["seconds"]
        elif kind == "finished":
            minutes += content["seconds"] / 60
        else:
            rows.append(Row(**{**content, "indices": tuple(content.get("indices", ()))}))
    rows.sort(key=lambda one: (list(SIZES).index(one.data), one.k, one.P, one.scaling))
    return Record(environment, libraries, first_calls, tuple(rows), minutes)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
