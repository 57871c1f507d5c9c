"""Every snippet of the site's pages is run, and the command line's page knows every command and option."""

import warnings
from pathlib import Path

import pytest
from snippets import FENCED, run_page

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if FENCED.search(page.read_text("utf-8"))
)
NEEDS = {"cluster.md": "distributed", "howto/manifold.md": "torch", "howto/sensors.md": "pysensors"}
LONG = ("howto/prove.md", "reproduction.md")


def test_there_are_pages_with_snippets():
    assert {"tutorial.md", "cluster.md", "howto/prove.md"} <= set(PAGES)


def marked(page):
    needs = [pytest.mark.needs(NEEDS[page])] if page in NEEDS else []
    return pytest.param(page, marks=[*needs, pytest.mark.long] if page in LONG else needs)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    if page == "cluster.md":
        warnings.simplefilter("ignore")  # Dask's own, about ports and closed connections
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / page, tmp_path) > 0


def test_the_command_lines_page_names_every_command_and_option():
    typer = pytest.importorskip("typer")
    from isopursuit.cli import app

    page = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        assert f"## isopursuit {name}" in page
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert [option for option in options if f"`{option}`" not in page] == []
