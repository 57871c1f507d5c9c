"""A command whose error stream is a terminal."""

import os
import subprocess

import pytest


def on_a_terminal(command):
    """Its exit status, and what it wrote to the terminal."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:  # on Linux, when nobody is left to write
            break
        if not chunk:
            break
        seen += chunk
    os.close(leader)
    return process.wait(), seen
