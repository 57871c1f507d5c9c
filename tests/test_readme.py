"""The README's terminal session is run as it stands; its Python is run as doctests."""

import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_terminal_session_prints_what_the_readme_shows(tmp_path):
    session = "".join(re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL))
    steps = re.findall(r"^\$ isopursuit (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.MULTILINE)
    assert len(steps) >= 3
    for command, shown in steps:
        run = subprocess.run(
            [Path(sysconfig.get_path("scripts"), "isopursuit"), *shlex.split(command)],
            capture_output=True, text=True, check=True, cwd=tmp_path,
        )  # fmt: skip
        assert [line.rstrip() for line in run.stdout.splitlines()] == shown.splitlines(), command
