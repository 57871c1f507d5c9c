"""What a page shows is run: its Python as doctests, its terminal sessions as commands, in the page's own order."""

import doctest
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

from commands import run

COMMAND = Path(sysconfig.get_path("scripts"), "isopursuit")
FENCED = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
ROUNDING = re.compile(r"gap \d\.\de[-+]\d\d")  # its digits are those of one processor
STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", flags=re.MULTILINE)


class Checker(doctest.OutputChecker):
    """Compares what is printed, but for the digits of a gap."""

    def check_output(self, want, got, optionflags):
        return super().check_output(ROUNDING.sub("gap", want), ROUNDING.sub("gap", got), optionflags)


def run_page(page: Path) -> int:
    """Run a page's snippets in the working folder; how many there were."""
    names, runner = {"__name__": "__main__"}, doctest.DocTestRunner(Checker())
    text = page.read_text(encoding="utf-8")
    found = 0
    for block in FENCED.finditer(text):
        kind, body = block.groups()
        if kind == "console":
            found += run_session(body)
            continue
        if ">>> " not in body:
            exec(body, names)
            found += 1
            continue
        line = text.count("\n", 0, block.start()) + 1
        test = doctest.DocTestParser().get_doctest(body, names, page.name, str(page), line)
        assert runner.run(test, clear_globs=False).failed == 0, f"{page.name}, line {line}: see above"
        names, found = test.globs, found + len(test.examples)
    return found


def run_session(session: str, process: bool = False) -> int:
    """Run the commands of a terminal session and compare what they print; how many there were.

    They run in this process, or each in its own.
    """
    steps = STEP.findall(session)
    for line, shown in steps:
        program, *options = shlex.split(line)
        assert program == "isopursuit"
        done = subprocess.run([COMMAND, *options], capture_output=True, text=True) if process else run(*options)
        assert done.returncode == 0, done.stderr
        assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines(), line
    return len(steps)
