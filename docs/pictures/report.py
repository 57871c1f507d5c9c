"""The first screen of the tutorial's HTML report, as Chromium shows it."""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from style import FOLDER

from isopursuit.data import load_words

COMMAND = "select words.csv --label class -k 7 --report words.html"
COLOURS = 64  # of the picture: a third of the size, and no difference to see
FLAGS = "--headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=860,1350"


def draw():
    """Write report.png."""
    if (chromium := shutil.which("chromium")) is None:
        raise SystemExit("the picture report needs a browser: apt-get install chromium")
    with TemporaryDirectory() as folder:
        Path(folder, "words.csv").write_text(load_words().as_csv(), encoding="utf-8")
        command = [Path(sys.executable).with_name("isopursuit"), *COMMAND.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        page, shot = Path(folder, "words.html").as_uri(), Path(folder, "shot.png")
        subprocess.run([chromium, *FLAGS.split(), f"--screenshot={shot}", page], check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(COLOURS).save(FOLDER / "report.png", optimize=True)
