"""The site's snippets run, pages are short, pictures have a text, and no command, option or module is left out."""

import re
import warnings
from pathlib import Path

import pytest
from snippets import FENCED, run_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if FENCED.search(page.read_text("utf-8"))
)
NEEDS = {"cluster.md": "distributed", "howto/manifold.md": "torch"}
LONG = ("howto/prove.md", "reproduction.md")
WRITTEN = {page: page.read_text("utf-8") for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]}
MEASUREMENTS = {DOCS / "reproduction.md", DOCS / "peers.md"}  # their tables are long
CODE = re.compile(r"^```.*?^```$|^    [^\n]*$", flags=re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[(.*?)\]\(|^```\{(?:figure|image)\}[^\n]*\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


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


def test_the_readme_takes_a_minute_to_read():
    # 800 words outside fenced and indented code, table cells counted
    assert len(CODE.sub("", WRITTEN[ROOT / "README.md"]).split()) <= 800


def test_no_page_is_longer_than_1500_words():
    # as `wc -w` counts them: code and table cells are words too, and so are the bars between the cells
    pages = {page: len(text.split()) for page, text in WRITTEN.items() if page not in MEASUREMENTS}
    assert {page.name: words for page, words in pages.items() if words > 1500 and page.parent != ROOT} == {}


def test_every_picture_says_in_words_what_is_to_be_seen():
    told = [(page.name, plain or boxed) for page, text in WRITTEN.items() for plain, boxed in PICTURE.findall(text)]
    assert len(told) >= 5
    short = [(page, text) for page, text in told if len((text.partition(":alt:")[2] or text).split()) < 5]
    assert short == []
