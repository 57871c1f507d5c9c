"""What a page shows is run: its Python as doctests, its terminal sessions as commands, in the page's own order."""

import doctest
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

FENCED = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
ROUNDING = re.compile(r"gap \d\.\de[-+]\d\d")  # its digits are those of one processor
STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", flags=re.MULTILINE)


class Checker(doctest.OutputChecker):
    """Compares what is printed, but for the digits of a gap."""

    def check_output(self, want, got, optionflags):
        return super().check_output(ROUNDING.sub("gap", want), ROUNDING.sub("gap", got), optionflags)


def run_page(page: Path, folder: Path) -> int:
    """Run a page's snippets in a folder, which must be the working one; how many there were."""
    names, runner = {"__name__": "__main__"}, doctest.DocTestRunner(Checker())
    text = page.read_text(encoding="utf-8")
    found = 0
    for block in FENCED.finditer(text):
        kind, body = block.groups()
        if kind == "console":
            found += run_session(body, folder)
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


def run_session(session: str, folder: Path) -> int:
    """Run the commands of a terminal session and compare what they print; how many there were."""
    steps = STEP.findall(session)
    for command, shown in steps:
        program, *options = shlex.split(command)
        found = shutil.which(program, path=sysconfig.get_path("scripts"))
        assert found is not None, f"{program} is not a program of this environment"
        run = subprocess.run([found, *options], capture_output=True, text=True, check=True, cwd=folder)
        assert [line.rstrip() for line in run.stdout.splitlines()] == shown.splitlines(), command
    return len(steps)
