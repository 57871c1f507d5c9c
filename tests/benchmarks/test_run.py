"""What `make bench` measured becomes the tables and the picture of docs/benchmarks.md."""

import pytest

run = pytest.importorskip("benchmarks.run", reason="needs the repository's root on the path")
MARKS = "".join(
    f"<!-- {name}: written by `python -m benchmarks.run --write` -->\n<!-- /{name} -->\n"
    for name in ("pursuit", "exact", "scaling")
)


def row(name, median, group=None, **info):
    return {"name": f"test_{name}", "group": group, "stats": {"median": median}, "extra_info": info}


@pytest.fixture
def rows():
    problem = "gauss 16x1000"
    found = {"loss": 12.25, "seconds": 60.0, "nodes": 1234, "status": "time", "size": 8}
    return [
        row(f"isopursuit[{problem}]", 0.004, problem, gap=1e-11),
        row(f"peer[{problem}-SCS]", 120.0, problem, stopped=True, failed=False),
        row("wine_ladder[8]", 60.0, **found),
        *(row(f"scaling_in_columns[{P}]", 1e-6 * P**0.75, size=P) for P in (1000, 4000, 16_000)),
        *(row(f"scaling_in_rows[{D}]", 1e-4 * D**1.5, size=D) for D in (2, 4, 8)),
    ]


@pytest.fixture
def page(tmp_path, monkeypatch):
    (tmp_path / "pictures").mkdir()
    made = tmp_path / "benchmarks.md"
    made.write_text(MARKS, encoding="utf-8")
    monkeypatch.setattr(run, "PAGE", made)
    return made


def test_the_page_has_the_figures_of_the_measurement(rows, page):
    run.write_page(rows)
    text = page.read_text(encoding="utf-8")
    assert "| Gaussian 16 × 1,000 | 4.0 ms | > 120 s | 30,000 |" in text
    assert "| Wine 8 × 178 | 12.2500000 | 60 s | 1,234 | time |" in text
    assert "P^0.75" in text
    assert "D^1.50" in text
    assert "30,000 ×" in (page.parent / "pictures" / "benchmarks.svg").read_text(encoding="utf-8")


def test_what_was_not_measured_stays_as_it_was(rows, page):
    run.write_page(rows)
    complete, picture = page.read_text(encoding="utf-8"), page.parent / "pictures" / "benchmarks.svg"
    drawn = picture.read_bytes()
    run.write_page([one for one in rows if "ladder" in one["name"]])
    assert page.read_text(encoding="utf-8") == complete
    assert picture.read_bytes() == drawn


def test_the_documentations_page_has_the_marks_of_every_table():
    text = run.PAGE.read_text(encoding="utf-8")
    assert [line for line in MARKS.splitlines() if line not in text] == []
