"""The command line (extra `cli`): `isopursuit select FILE` and the other commands.

`app` declares the commands and their options, `commands` does the work, `inputs` reads the files, `progress` shows the
progress, and `output` prints and saves answers.
"""

import sys

from isopursuit.errors import PackageError, optional

try:
    optional("typer", "cli", "The command line")
except PackageError as error:
    sys.exit(f"error: {error}")

from isopursuit.cli.app import app, main

__all__ = ["app", "main"]
