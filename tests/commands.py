"""A command run in this process: what it prints, and its exit status, as `subprocess.run` would return them."""

import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from types import SimpleNamespace
from unittest.mock import patch

import pytest

WIDE = patch.dict(os.environ, {"COLUMNS": "200"})  # no message of the parser is wrapped


def run(*arguments):
    """Run `isopursuit` with these arguments."""
    pytest.importorskip("typer")
    from isopursuit.cli.app import app

    command = ["isopursuit", *map(str, arguments)]
    status, output, errors = 0, StringIO(), StringIO()
    with redirect_stdout(output), redirect_stderr(errors), patch("sys.argv", command), WIDE:
        try:
            app()
        except SystemExit as end:  # as the interpreter treats it
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                errors.write(f"{end.code}\n")
    return SimpleNamespace(returncode=status, stdout=output.getvalue(), stderr=errors.getvalue())
