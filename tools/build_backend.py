"""The build backend: meson-python. It refuses an editable install from an isolated environment.

An editable install rebuilds the kernels on import, with the tools that built it. After an isolated build these tools
are deleted, so `import isopursuit` would fail.
"""

from mesonpy import build_editable, build_sdist, build_wheel, get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

REFUSAL = """
An editable install needs its build tools on every import, so they must be in your environment. Run

    pip install -r requirements-demo.txt
    pip install --no-build-isolation -e .

or, if you do not change the code: pip install .
"""


def get_requires_for_build_editable(config_settings: dict[str, object] | None = None) -> list[str]:
    """Refuse: pip and uv ask for requirements only to install them in an isolated environment."""
    raise SystemExit(REFUSAL)
