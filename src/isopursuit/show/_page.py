"""Shared parts of all pages: templates and filters, the content policy, versions, and embedded pictures."""

from __future__ import annotations

import base64
import hashlib
import math
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from isopursuit._core.options import is_number
from isopursuit._core.views import fixed, number, percent, shade, signed
from isopursuit.errors import PackageError, optional
from isopursuit.results import USEFUL, loss_text
from isopursuit.show._svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PACKAGES = ("isopursuit", "numpy", "scipy", "matplotlib")  # packages whose versions a page lists


def require_templates() -> Any:
    """Jinja2, or an error that says what to install; called before any work on a page."""
    return optional("jinja2", "report", "The report")


def render(template: str, **content: Any) -> str:
    """A page from a template of the package's data, with styles, script and versions."""
    script = _asset("report.js")
    page = (
        _environment()
        .get_template(template)
        .render(
            versions=_versions(),
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            style=_asset("report.css"),
            script=script,
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **content,
        )
    )
    return page.encode("utf-8", "replace").decode()  # a label may contain a lone surrogate


def draw_pictures(
    drawings: Mapping[str, Callable[[Axes], object]], prefix: str = "p", **options: Any
) -> tuple[dict[str, str], str]:
    """SVGs by caption, or the reason why there are none; `prefix` makes the ids of a group of pictures unique."""
    try:
        optional("matplotlib", "plot", "Drawing")
    except PackageError as error:
        return {}, str(error)
    numbered = enumerate(drawings.items())
    return {caption: inline_svg(draw, caption, f"{prefix}{i}", **options) for i, (caption, draw) in numbered}, ""


def _environment() -> Any:
    jinja2 = require_templates()
    environment: Any = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"number": number, "percent": percent, "fixed": fixed, "shade": shade}
    environment.filters |= {"loss_text": loss_text, "sort_key": _sort_key, "signed": signed, "cell": _cell}
    environment.tests["number"] = is_number
    environment.tests["finite"] = math.isfinite
    environment.globals["useful"] = USEFUL
    return environment


def _asset(name: str) -> str:
    return (files("isopursuit") / "show" / "templates" / name).read_text(encoding="utf-8")


def _sort_key(value: float) -> str:
    """A number in JavaScript's notation."""
    return repr(float(value)).replace("inf", "Infinity")


def _cell(value: object) -> str:
    """A value of a table as text."""
    return number(float(value), 6) if is_number(value) else str(value)


def _versions() -> dict[str, str]:
    """The versions of the software that made the answer."""
    found = {name: _version(name) for name in PACKAGES}
    found["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    return found | {"platform": platform.platform()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
