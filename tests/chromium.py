"""A real browser: Debian's Chromium, headless. Pictures of pages go to output/."""

import base64
import shutil
from pathlib import Path

import pytest

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs a browser: apt-get install chromium chromium-driver"
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
OUTPUT = Path(__file__).parents[1] / "output"


def open_browser(profile):
    """A browser that keeps what pages log and what they ask the network for."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(DRIVER))


def show(browser, address, width=1440, scheme="light", media=""):
    """Load a page in a window of that width; narrow ones are telephones."""
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": feature})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)


def widths(browser):
    """How wide the window is, and how wide the page."""
    return browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")


def save(browser, name):
    """The whole page as a picture."""
    OUTPUT.mkdir(exist_ok=True)
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (OUTPUT / name).write_bytes(base64.b64decode(shot["data"]))
