"""What `make bench` measured becomes the tables, the figures and the picture of docs/speed.md."""

import csv

import pytest

pages = pytest.importorskip("benchmarks.pages", reason="needs the repository's root on the path")
run = pytest.importorskip("benchmarks.run")


def row(name, median, group=None, **info):
    return {"name": f"test_{name}", "group": group, "stats": {"median": median}, "extra_info": info}


@pytest.fixture
def rows():
    problem = "gauss 16x1000"
    found = {"loss": 12.25, "seconds": 60.0, "nodes": 1234, "status": "time", "size": 8}
    return [
        row(f"isopursuit[{problem}]", 0.004, problem, gap=1e-11),
        row(f"peer[{problem}-SCS]", 120.0, problem, stopped=True, failed=False),
        row("wine_ladder[13]", 60.0, **found),
        *(row(f"scaling_in_columns[{P}]", 1e-6 * P**0.75, size=P) for P in (1000, 4000, 16_000)),
        *(row(f"scaling_in_rows[{D}]", 1e-4 * D**1.5, size=D) for D in (2, 4, 8)),
    ]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder where the tables, the figures and the picture go, with a page that shows a figure."""
    page = tmp_path / "page.md"
    page.write_text("It takes <!-- run.wine_13 -->nothing<!-- / -->.", encoding="utf-8")
    for module, name, value in (
        (pages, "TABLES", tmp_path), (pages, "FIGURES", tmp_path / "figures.json"), (pages, "pages", lambda: [page]),
        (run, "PICTURE", tmp_path / "benchmarks.svg"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return tmp_path


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_tables_and_pages_have_the_figures_of_the_measurement(rows, written):
    run.write_page(rows)
    texts = ((written / f"{name}.csv").read_text(encoding="utf-8") for name in ("pursuit", "exact"))
    solved, proved = (list(csv.reader(text.splitlines())) for text in texts)
    assert solved[1] == ["Gaussian 16 × 1,000", "4.0 ms", "> 120 s", "30,000"]
    assert proved[1] == ["Wine 13 × 178", "12.2500000", "60 s", "1,234", "time"]
    figures = pages.recorded()["run"]["figures"]
    assert (figures["columns_power"], figures["rows_power"], figures["most_ratio"]) == ("0.75", "1.50", "30,000")
    assert "takes <!-- run.wine_13 -->60 s<!-- / -->." in (written / "page.md").read_text(encoding="utf-8")
    assert "30,000 ×" in (written / "benchmarks.svg").read_text(encoding="utf-8")


def test_what_was_not_measured_stays_as_it_was(rows, written):
    run.write_page(rows)
    before = read(written)
    run.write_page([one for one in rows if "ladder" in one["name"]])
    assert read(written) == before
