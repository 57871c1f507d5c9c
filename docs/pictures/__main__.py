"""Draw the pictures of README and documentation again: `python docs/pictures [NAME ...]`, from the repository's root.

Each module beside this one draws one picture, with its function `draw`, into the file of its name in this folder.
Pictures that belong to a measurement are drawn by its command in `benchmarks`.
"""

import argparse
from importlib import import_module

from style import FOLDER

NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__main__", "style"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(NAMES), metavar="NAME")
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    for name in names:
        import_module(name).draw()
        print(f"drew {name}")


if __name__ == "__main__":
    main()
