#!/usr/bin/env python3
"""Print the version that these sources have: read by meson.build, and so by every wheel and sdist.

A tag v1.2.3 is version 1.2.3; n commits after it is 1.2.4.devn+gSHA; before any tag it is 0.0.0.dev0+gSHA. A checkout
asks git; an sdist has a PKG-INFO; a source archive has what git wrote below when it was made.
"""

import re
import subprocess
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHIVED = "$Format:%(describe:tags,match=v[0-9]*,abbrev=9) %h$"  # .gitattributes: export-subst


def version(root: Path = ROOT, archived: str = ARCHIVED) -> str:
    """The version of the sources in this folder."""
    if (root / ".git").exists():
        described = _git(root, "describe", "--tags", "--long", "--match", "v[0-9]*", "--abbrev=9")
        return from_description(described, _git(root, "rev-parse", "--short=9", "HEAD"))
    if (root / "PKG-INFO").exists():
        return message_from_string((root / "PKG-INFO").read_text(encoding="utf-8"))["Version"]
    return from_description(*(("", "") if archived.startswith("$") else archived.rsplit(" ", 1)))


def from_description(described: str, commit: str) -> str:
    """v1.2.3-4-gabc → 1.2.4.dev4+gabc; v1.2.3 and v1.2.3-0-gabc → 1.2.3; a pre-release's number is kept."""
    found = re.fullmatch(r"v([^-]*?)(\d+)(?:-(\d+)-g(\w+))?", described)
    if found is None:
        return f"0.0.0.dev0+g{commit}" if commit else "0.0.0.dev0"
    start, last, since, commit = found.groups(default="")
    return f"{start}{last}" if since in ("", "0") else f"{start}{int(last) + 1}.dev{since}+g{commit}"


def _git(root: Path, *words: str) -> str:
    """What git says, or nothing where there is no git, no tag or no commit."""
    try:
        run = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


if __name__ == "__main__":
    print(version())
