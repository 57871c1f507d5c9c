"""The pages' snippets run, their figures are the recorded ones, pages are short, and pictures have a text."""

import re
import warnings
from pathlib import Path

import pytest
from snippets import FENCED, run_page

from benchmarks import pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if FENCED.search(page.read_text("utf-8"))
)
NEEDS = {"big_data.md": "distributed"}
LONG = ("howto/prove.md", "reproduction.md")
WRITTEN = {page: page.read_text("utf-8") for page in pages.pages()}
COMMENT = re.compile(r"<!--.*?-->", flags=re.DOTALL)
LONGER = {DOCS / "reproduction.md": 2300}
CODE = re.compile(r"^```.*?^```$|^    [^\n]*$", flags=re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\d[\d.,]*[ -]?(?:ms|s|seconds?|minutes?|hours?|times as fast)\b")
SETTINGS = {"60 s", "30 s", "120 s", "20 s", "10 s"}  # limits
PICTURE = re.compile(r"!\[(.*?)\]\(|^```\{(?:figure|image)\}[^\n]*\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def test_there_are_pages_with_snippets():
    assert {"tutorial.md", "big_data.md", "howto/prove.md"} <= set(PAGES)


def marked(page):
    needs = [pytest.mark.needs(NEEDS[page])] if page in NEEDS else []
    return pytest.param(page, marks=[*needs, pytest.mark.long] if page in LONG else needs)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    if page == "big_data.md":
        warnings.simplefilter("ignore")  # Dask's own, about ports and closed connections
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / page) > 0


def words(text):
    """As `wc -w` counts them: code and table cells are words too, and so are the bars between the cells."""
    return len(COMMENT.sub("", text).split())


def test_the_readme_takes_a_minute_to_read():
    assert words(CODE.sub("", WRITTEN[ROOT / "README.md"])) <= 800


def test_no_page_is_longer_than_1500_words_and_all_together_than_25_000():
    counts = {page: words(text) for page, text in WRITTEN.items() if page.is_relative_to(DOCS)}
    assert {page.name: count for page, count in counts.items() if count > LONGER.get(page, 1500)} == {}
    assert sum(counts.values()) <= 25_000


def test_every_figure_on_a_page_is_the_one_that_its_command_recorded():
    recorded = pages.recorded()
    assert {page.name for page, text in WRITTEN.items() if pages.filled(text, recorded) != text} == set()
    shown = {(name, figure) for text in WRITTEN.values() for _, name, figure, *_ in pages.FIGURE.findall(text)}
    assert shown <= {(name, figure) for name, one in recorded.items() for figure in one["figures"]}
    begins = re.compile(r"^<!-- [a-z_]+\.", flags=re.MULTILINE)  # Markdown takes such a line for HTML
    assert {page.name for page, text in WRITTEN.items() if begins.search(text)} == set()


def test_every_measured_time_in_a_sentence_is_recorded():
    # times that are settings, or a reader's own, are no measurements
    measured = {
        page.name: found
        for page, text in WRITTEN.items()
        if (found := [time for time in TIME.findall(prose(text)) if time not in SETTINGS])
    }
    assert measured == {}


def prose(text):
    """A page without code, tables and recorded figures."""
    text = CODE.sub("", pages.FIGURE.sub("", text))
    return re.sub(r"^\|.*$|`[^`]*`|!\[.*?\]\(.*?\)", "", text, flags=re.MULTILINE | re.DOTALL)


def test_every_picture_says_in_words_what_is_to_be_seen():
    told = [(page.name, plain or boxed) for page, text in WRITTEN.items() for plain, boxed in PICTURE.findall(text)]
    assert len(told) >= 5
    short = [(page, text) for page, text in told if len((text.partition(":alt:")[2] or text).split()) < 5]
    assert short == []
