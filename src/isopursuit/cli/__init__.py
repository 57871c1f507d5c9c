"""The command line (extra `cli`): `isopursuit select FILE` and the other commands.

`app` has the commands, `arguments` their options, `candidates` reads the files, `output` prints and saves answers,
`words` translates messages, `watch` shows the progress, and `interrupts` handles signals.
"""

import sys
from io import TextIOWrapper

from isopursuit.cli.interrupts import interrupts
from isopursuit.errors import PackageError, optional


def main() -> None:
    """Run a command. Characters that the output's encoding lacks (≤ on Windows) are replaced."""
    interrupts.start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        optional("typer", "cli", "The command line")
        from isopursuit.cli.app import app

        app()
    except PackageError as error:
        sys.exit(f"error: {error}")
    finally:
        interrupts.stop()
