"""Check an installation in an environment that has nothing but its dependencies: python -I tools/smoke.py."""

import re
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.errors import PackageError


def main() -> None:
    """Import the package, solve, prove, and run the command, whose packages may be missing."""
    build = (Path(__file__).resolve().parents[1] / "meson.build").read_text(encoding="utf-8")
    stated = re.search(r"^  version: '([^']+)'", build, flags=re.MULTILINE)
    assert stated is not None, "meson.build states no version"
    expected = stated.group(1)
    assert ip.__version__ == version("isopursuit") == expected, (ip.__version__, expected)
    X = load_wine().matrix()
    pursuit = ip.isometry_pursuit(X)
    assert pursuit.certificate.gap < 1e-10, pursuit
    assert len(pursuit.support) == 31, pursuit
    best = ip.select(X[:6], method="exact")
    assert best.search.optimal, best
    assert abs(best.loss - 7.0315) < 1e-4, best
    for name in ("report.html.jinja", "report.css", "report.js"):
        assert (files("isopursuit") / "show" / "templates" / name).is_file(), name
    try:
        page = best.to_html(X=X[:6], title="Six wines")
    except PackageError as error:
        page = str(error)
    assert ("<h1>Six wines" if find_spec("jinja2") else "Install isopursuit[report]") in page, page
    command = [sys.executable, "-m", "isopursuit", "--version"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if find_spec("typer"):
        assert run.stdout.strip() == expected, run
    else:
        assert run.returncode == 1, run
        assert "Install isopursuit[cli]" in run.stderr, run
        assert "Traceback" not in run.stderr, run


if __name__ == "__main__":
    main()
