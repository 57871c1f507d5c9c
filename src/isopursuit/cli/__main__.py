"""`python -m isopursuit.cli` is the same as the command `isopursuit`."""

from isopursuit.cli import main

if __name__ == "__main__":
    main()
