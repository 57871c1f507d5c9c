"""`python -m isopursuit` is the same as the command `isopursuit`."""

from isopursuit.cli import main

main()
