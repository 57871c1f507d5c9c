"""The build backend: meson-python, with editable installs that can be imported after an isolated build.

An editable install of meson-python runs ninja on every import. `pip install -e .` builds in an isolated environment,
which pip deletes with its ninja and Cython, and the import would fail. Here a script takes the place of ninja: it runs
ninja while the tools of the build are there, and does nothing once they are deleted. Then Python files are used as
they are, and kernels as they were built.
"""

import os
import shutil
import sys
from pathlib import Path

import mesonpy
from mesonpy import (
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]


def build_editable(wheel_directory: str, config_settings: dict[str, object] | None = None, *ignored: object) -> str:
    """Build with the script in the place of ninja. (On Windows meson-python calls meson: use --no-build-isolation.)"""
    if sys.platform != "win32":
        script = Path("build", "ninja").resolve()
        script.parent.mkdir(exist_ok=True)
        cython, ninja = shutil.which("cython"), shutil.which("ninja")
        script.write_text(f'#!/bin/sh\n[ -x "{cython}" ] || exit 0\nexec "{ninja}" "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        os.environ["NINJA"] = str(script)
    return mesonpy.build_editable(wheel_directory, config_settings)
