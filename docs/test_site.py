"""The built site: links inside it lead somewhere, nothing is loaded from elsewhere, no page scrolls sideways."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from chromium import needs_browser, open_browser, save, show, widths
from sphinx.util.inventory import InventoryFile

SITE = Path(__file__).parent / "_build" / "html"
PAGES = sorted(SITE.rglob("*.html"))
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
# modules that a reference page shows whole
REFERENCE = "".join(page.read_text(encoding="utf-8") for page in (Path(__file__).parent / "reference").glob("*.md"))
SHOWN = re.findall(r"automodule:: (isopursuit\.\S+)\n(?! +:members:)", REFERENCE)
SEEN = (
    "index",
    "tutorial",
    "explanation/geometry",
    "gallery/wine",
    "gallery/ethanol",
    "gallery/alanine_dipeptide",
    "reference/selecting",
)


class Page(HTMLParser):
    """What a page links to, what it loads, and which places in it can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        for name, value in attrs:
            if (tag, name) in LOADED and values.get("rel") not in ("canonical", "index", "search", "next", "prev"):
                self.loaded.append(value)
            elif name == "href" and value:
                self.links.append(value)


@cache
def read(path):
    return Page(path)


def inside(address):
    return not urlsplit(address).scheme


def target(page, address):
    """The file that an address on a page means, and the place in it."""
    path, place = unquote(urlsplit(address).path), unquote(urlsplit(address).fragment)
    return (page.parent / path).resolve() if path else page, place


def dangling(page, address):
    file, place = target(page, address)
    if file.is_dir():
        file /= "index.html"
    return not file.is_file() or (place and file.suffix == ".html" and place not in read(file).places)


def test_the_site_was_built():
    assert len(PAGES) > 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
def test_every_link_inside_the_site_leads_somewhere(page):
    found = read(page)
    assert [address for address in found.links + found.loaded if inside(address) and dangling(page, address)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
def test_nothing_is_loaded_from_elsewhere_and_links_that_leave_are_well_formed(page):
    found = read(page)
    assert [address for address in found.loaded if not inside(address) and not address.startswith("data:")] == []
    away = [address for address in found.links if not inside(address)]
    assert [
        address for address in away if not re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(/\S*)?|data:\S+", address)
    ] == []


def test_style_sheets_load_nothing_from_elsewhere():
    outside = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")
    assert [sheet.name for sheet in SITE.rglob("*.css") if outside.search(sheet.read_text(encoding="utf-8"))] == []


def test_every_public_name_is_in_the_reference():
    inventory = InventoryFile.loads((SITE / "objects.inv").read_bytes(), uri="")
    known = {name for kind in inventory.data.values() for name in kind}
    assert {f"isopursuit.{name}" for name in ("data", "errors", "estimators", "show")} <= set(SHOWN)
    errors = import_module("isopursuit.errors")
    wanted = {f"isopursuit.{name}" for name in import_module("isopursuit").__all__ if not hasattr(errors, name)}
    for module in map(import_module, SHOWN):
        own = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
        public = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
        wanted |= {f"{module.__name__}.{name}" for name in public if callable(getattr(module, name))}
    assert sorted(wanted - known) == []


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@needs_browser
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_scrolls_sideways_complains_or_asks_the_network(browser, page, width, scheme):
    browser.get_log("browser"), browser.get_log("performance")
    show(browser, page.as_uri(), width, scheme)
    window, total = widths(browser)
    assert (window, total <= width) == (width, True), f"{total} px wide"
    assert (
        browser.execute_script("const c = document.querySelector('.content'); return c.scrollWidth - c.clientWidth")
        == 0
    )
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if url.startswith("http")] == []
    name = page.relative_to(SITE).with_suffix("").as_posix()
    if name in SEEN:
        save(browser, f"site-{name.replace('/', '-')}-{width}-{scheme}.png")
