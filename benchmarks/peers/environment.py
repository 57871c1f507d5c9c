"""The peers' own environment: installed line by line, weighed, and its imports timed in fresh processes."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np

from .methods import LIBRARIES

ROOT = Path(__file__).parents[2]
# The peers, as of the run in benchmarks/recorded/peers.jsonl. None of them needs PyTorch. One line is one pip call, so
# that a peer that does not install leaves the others alone and its reason is recorded.
PEERS = (
    "packaging",
    "numpy==2.4.6 scipy==1.17.1",
    "scikit-learn==1.8.0",
    "teneva==0.14.11",
    "skmatter==0.4.1",
    "pyversity==0.2.0",
    "dppy==0.3.3",
    "langchain-core==1.7.2",
    "apricot-select==0.6.1",
    "skglm==0.5",
    "cvxpy==1.9.3 scs==3.3.1 clarabel==0.11.1 ecos==2.0.14",
)

WEIGH = """
import json, sys
from importlib.metadata import PackageNotFoundError, distribution
from packaging.requirements import Requirement

def weigh(name):
    return sum(file.locate().stat().st_size for file in distribution(name).files or () if file.locate().is_file())

def closure(names):
    seen, waiting = set(), list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        try:
            wanted = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        if name not in seen:
            seen.add(name)
            needs = map(Requirement, wanted)
            waiting += [need.name for need in needs if not need.marker or need.marker.evaluate({"extra": ""})]
    return seen

names = sys.argv[1:]
version = ", ".join(distribution(name).version for name in names)
print(json.dumps({"version": version, "own_mb": sum(map(weigh, names)) / 2**20,
                  "installed_mb": sum(map(weigh, closure(names))) / 2**20}))
"""

IMPORT = """
import sys, time, warnings
warnings.simplefilter("ignore")
began = time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - began)
"""


def install(folder: Path) -> tuple[Path, dict[str, str]]:
    """The environment's Python, and pip's last word on each line that did not install."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    failures: dict[str, str] = {}
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    for line in PEERS:
        done = subprocess.run([*pip, *line.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [said for said in done.stderr.splitlines() if said.startswith("ERROR")]
            failures[line] = errors[-1] if errors else done.stderr.strip()[-200:]
    wheels = folder.parent / "wheels"
    here = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-index", "--no-deps", "--no-build-isolation", "-C", "builddir=build", "-w", str(wheels), "."]
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([*here, *build], cwd=ROOT, env=tools, check=True)
    newest = max(wheels.glob("isopursuit-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    subprocess.run([*pip, "--no-index", "--no-deps", "--force-reinstall", str(newest)], check=True)
    return python, failures


def describe(python: Path, name: str, failures: dict[str, str]) -> dict[str, Any]:
    """Version, sizes, import time and memory of a library, or why it cannot be had."""
    library = LIBRARIES[name]
    for line, reason in failures.items():
        if any(f"{distribution}==" in line for distribution in library.distributions):
            return {"name": name, "error": reason}
    weighed = subprocess.run(
        [str(python), "-c", WEIGH, *library.distributions], capture_output=True, text=True, check=True
    )
    command = [str(python), "-c", IMPORT, library.module]
    imports = []
    for _ in range(4):  # the first reads the files from the disk
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"name": name, "error": done.stderr.strip().splitlines()[-1]}
        imports.append(float(done.stdout.split()[-1]))
    return {"name": name, **json.loads(weighed.stdout), "import_seconds": float(np.median(imports[1:]))}
