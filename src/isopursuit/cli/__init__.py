"""The command line (extra `cli`): `isopursuit select FILE` and its neighbours.

`app` declares the commands and their options, `commands` does the work, `inputs` reads what a command is given,
`progress` shows how far it is, and `output` prints, saves and ends it.
"""

import sys

from isopursuit.errors import PackageError, optional

try:
    optional("typer", "cli", "The command line")
except PackageError as error:
    sys.exit(f"error: {error}")

from isopursuit.cli.app import app, main

__all__ = ["app", "main"]
