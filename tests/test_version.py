"""The version is a tag, wherever the sources come from."""

import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

import isopursuit

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (shutil.which("git") and (ROOT / ".git").exists()), reason="not a checkout")


def git(folder, *words):
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@nowhere", "-c", "commit.gpgsign=false"]
    return subprocess.check_output(["git", "-C", folder, *who, *words], text=True).strip()


def version_of(folder):
    return subprocess.check_output([sys.executable, folder / "tools" / "version.py"], text=True).strip()


@pytest.fixture
def repository(tmp_path):
    """One commit, no tags."""
    folder = tmp_path / "repository"
    (folder / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "version.py", folder / "tools")
    (folder / ".gitattributes").write_text("tools/version.py export-subst\n")
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "a step")
    return git(folder, "rev-parse", "--short=9", "HEAD")


def unpacked(folder, where):
    """What a source archive of this repository holds."""
    git(folder, "archive", "--output", "archive.tar", "HEAD")
    with tarfile.open(folder / "archive.tar") as archive:
        archive.extractall(where, filter="data")
    return where


def test_a_tag_is_the_version_and_commits_after_it_lead_to_the_next(repository):
    git(repository, "tag", "v1.2.19")
    assert version_of(repository) == "1.2.19"
    sha = commit(repository)
    assert version_of(repository) == f"1.2.20.dev1+g{sha}"
    git(repository, "tag", "v2.0.0rc1")
    assert version_of(repository) == "2.0.0rc1"


def test_before_any_tag_the_commit_is_named(repository):
    sha = git(repository, "rev-parse", "--short=9", "HEAD")
    git(repository, "tag", "very-nice")
    assert version_of(repository) == f"0.0.0.dev0+g{sha}"


def test_a_shallow_clone_without_tags_has_a_version(repository, tmp_path):
    git(repository, "tag", "v1.0.0")
    sha = commit(repository)
    git(tmp_path, "clone", "--quiet", "--depth", "1", "--no-tags", repository.as_uri(), "shallow")
    assert version_of(tmp_path / "shallow") == f"0.0.0.dev0+g{sha}"


def test_an_archive_remembers(repository, tmp_path):
    sha = git(repository, "rev-parse", "--short", "HEAD")
    assert version_of(unpacked(repository, tmp_path / "untagged")) == f"0.0.0.dev0+g{sha}"
    git(repository, "tag", "v1.0.0")
    assert version_of(unpacked(repository, tmp_path / "tagged")) == "1.0.0"
    sha = commit(repository)
    assert version_of(unpacked(repository, tmp_path / "later")) == f"1.0.1.dev1+g{sha}"


def test_an_sdist_says_what_its_metadata_say_even_inside_another_repository(repository):
    git(repository, "tag", "v7.0.0")
    sdist = repository / "unpacked"
    shutil.copytree(repository / "tools", sdist / "tools")
    assert version_of(sdist) == "0.0.0.dev0"
    (sdist / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: isopursuit\nVersion: 1.2.3\n\nVersion: words\n")
    assert version_of(sdist) == "1.2.3"


def test_the_installed_package_tells_its_version():
    assert isopursuit.__version__ == version("isopursuit")
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        _ = isopursuit.version
