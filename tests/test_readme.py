"""The README's terminal session is run as it stands; its Python is run as doctests."""

from pathlib import Path

from snippets import FENCED, run_session

README = Path(__file__).parents[1] / "README.md"


def test_the_terminal_session_prints_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = "".join(body for kind, body in FENCED.findall(README.read_text(encoding="utf-8")) if kind == "console")
    assert run_session(session, process=True) == 2
