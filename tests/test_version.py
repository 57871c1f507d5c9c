"""The version is stated in meson.build; everything else agrees with it."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import isopursuit

ROOT = Path(__file__).parents[1]


def stated(file, pattern):
    """The first version that a file of the project states."""
    return re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE).group(1)


@pytest.fixture(scope="module")
def expected():
    return stated("meson.build", r"^  version: '([^']+)'")


def test_the_installed_package_has_the_version_of_the_build_file(expected):
    assert isopursuit.__version__ == version("isopursuit") == expected


def test_the_command_prints_the_version(expected):
    pytest.importorskip("typer")
    command = [sys.executable, "-m", "isopursuit", "--version"]
    assert subprocess.check_output(command, text=True).strip() == expected


def test_the_citation_the_changelog_and_the_guide_name_the_same_version_and_day(expected):
    day = stated("CITATION.cff", r"^date-released: (\S+)$")
    assert stated("CITATION.cff", r"^version: (\S+)$") == expected
    assert stated("docs/howto/prove.md", r"\(isopursuit (\S+), exact search") == expected
    assert stated("CHANGELOG.md", r"^## (\[\S+\] - \S+)$") == f"[{expected}] - {day}"


def test_the_package_has_no_other_attribute_of_that_kind():
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        _ = isopursuit.version
