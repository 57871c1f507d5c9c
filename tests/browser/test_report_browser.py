"""The report in a real browser. Screenshots go to output/."""

import json

import numpy as np
import pytest
from chromium import needs_browser, open_browser, save, show, widths
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.molecules import load_ethanol
from isopursuit.show._report import selection_page

pytestmark = [pytest.mark.needs("selenium"), needs_browser]
HOSTILE = '<script>document.title="owned"</script><img src=x onerror=document.title="owned">"\' $\\frac{'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def picked():
    X = load_wine().matrix() / np.sqrt(13)
    plain = ip.select(X, method="greedy")
    labels = [f"wine {i}" for i in range(178)]
    labels[plain.indices[0]] = HOSTILE
    history = [ip.SearchProgress(0.1 * i, 26.0, 12.0 + i / 10, 0.5, 10 * i, i) for i in range(10)]
    return ip.select(X, labels=labels, method="greedy"), X, history


@pytest.fixture(scope="module")
def address(picked, tmp_path_factory):
    selection, X, history = picked
    path = tmp_path_factory.mktemp("report") / "report.html"
    page = selection_page(selection, X, title=HOSTILE, source=HOSTILE, command=HOSTILE, history=history)
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """A fresh page, 1440 wide and light."""
    show(browser, address)
    return browser


def column(page, place):
    cells = page.find_elements(By.CSS_SELECTOR, f"#picked tbody tr > :nth-child({place})")
    return [cell.get_attribute("data-sort") or cell.text for cell in cells]


def head(page, place):
    return page.find_element(By.CSS_SELECTOR, f"#picked thead th:nth-child({place})")


def test_no_console_message_and_no_outside_request(browser, address):
    browser.get_log("browser"), browser.get_log("performance")
    show(browser, address)
    browser.execute_script("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if url != address and not url.startswith("data:")] == []


def test_the_policy_stops_what_escaping_might_miss(page):
    page.execute_script(
        "const s = document.createElement('div'); document.body.append(s);"
        "s.innerHTML = '<img src=x onerror=\"document.title = 1\">';"
        "const t = document.createElement('script'); t.textContent = 'document.title = 2'; document.body.append(t);"
    )
    assert page.title.startswith("<script>")
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


def test_a_hostile_label_is_only_text(page):
    assert page.title == HOSTILE
    assert HOSTILE in page.find_element(By.ID, "picked").text
    assert page.find_elements(By.CSS_SELECTOR, "img") == []
    assert len(page.find_elements(By.CSS_SELECTOR, "script")) == 1


def test_ids_are_unique_and_references_resolve(page):
    repeated, dangling = page.execute_script(
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
        "const known = new Set(ids);"
        'const used = [...document.documentElement.innerHTML.matchAll(/(?:href="|url\\((?:&quot;)?)#([\\w-]+)/g)];'
        "return [ids.filter((x, i) => ids.indexOf(x) !== i), used.map(m => m[1]).filter(x => !known.has(x))]"
    )
    assert (repeated, dangling) == ([], [])


def test_a_click_sorts_the_table_and_another_reverses_it(page):
    before = [float(x) for x in column(page, 4)]
    head(page, 4).find_element(By.TAG_NAME, "button").click()
    assert [float(x) for x in column(page, 4)] == sorted(before)
    assert head(page, 4).get_attribute("aria-sort") == "ascending"
    head(page, 4).find_element(By.TAG_NAME, "button").click()
    assert [float(x) for x in column(page, 4)] == sorted(before, reverse=True)
    assert head(page, 4).get_attribute("aria-sort") == "descending"


@pytest.mark.parametrize("key", [Keys.ENTER, Keys.SPACE])
def test_the_keyboard_sorts_the_table(page, key):
    head(page, 3).find_element(By.TAG_NAME, "button").send_keys(key)
    lengths = [float(x) for x in column(page, 3)]
    assert lengths == sorted(lengths)
    assert head(page, 3).get_attribute("aria-sort") == "ascending"
    head(page, 1).find_element(By.TAG_NAME, "button").send_keys(key)
    assert head(page, 3).get_attribute("aria-sort") == "none"
    numbered = [name for name in column(page, 1) if name.startswith("wine")]
    assert numbered == sorted(numbered, key=lambda name: int(name.split()[1]))


def test_pointing_at_the_gram_matrix_shows_the_pair(page, picked):
    selection = picked[0]
    cell = page.find_elements(By.CSS_SELECTOR, ".gram tbody tr")[2].find_elements(By.TAG_NAME, "td")[5]
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cell)
    ActionChains(page).move_to_element(cell).perform()
    said = page.find_element(By.ID, "readout").text
    value = float(selection.matrix[:, 2] @ selection.matrix[:, 5])
    assert said.startswith(f"{selection.labels[2]} · {selection.labels[5]}: inner product ")
    shown = said.split("inner product ")[1].split(" ")[0].replace("−", "-")
    assert float(shown) == pytest.approx(value, rel=1e-3)


def test_the_arrow_keys_walk_the_gram_matrix(page, picked):
    selection = picked[0]
    readout = page.find_element(By.ID, "readout")
    page.execute_script("document.querySelector('.gram tbody td').focus()")
    assert f"length {np.linalg.norm(selection.matrix[:, 0]):.3f}"[:-1] in readout.text
    ActionChains(page).send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).perform()
    assert readout.text.startswith(f"{selection.labels[1]} · {selection.labels[2]}: ")
    ActionChains(page).send_keys(Keys.END, Keys.ARROW_RIGHT).perform()
    assert readout.text.startswith(f"{selection.labels[1]} · {selection.labels[-1]}: ")
    assert len(page.find_elements(By.CSS_SELECTOR, ".gram td[tabindex='0']")) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_fits_its_window_and_follows_the_theme(browser, address, width, scheme):
    show(browser, address, width, scheme)
    inside, total = widths(browser)
    assert inside == width
    assert total <= width
    paper, ink = browser.execute_script(
        "const s = getComputedStyle(document.body), t = getComputedStyle(document.querySelector('figure text'));"
        "return [s.backgroundColor, t.fill]"
    )
    assert (brightness(paper) < 60) == (scheme == "dark")
    assert (brightness(ink) > 200) == (scheme == "dark")
    save(browser, f"report-{width}-{scheme}.png")


def test_it_prints_on_white_paper_without_loss(browser, address):
    show(browser, address, 760, "dark", media="print")
    assert brightness(browser.execute_script("return getComputedStyle(document.body).backgroundColor")) == 255
    clipped = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')]"
        ".filter(e => getComputedStyle(e).overflowX !== 'visible').length"
    )
    assert clipped == 0
    save(browser, "report-print.png")


@pytest.fixture(scope="module")
def coordinates(tmp_path_factory):
    """The address of a page about ethanol's torsions, whose pictures hold images."""
    found = ip.find_coordinates(load_ethanol(), 3, atoms="all", dictionary="bonds", groups=range(12), frames=30, seed=1)
    path = tmp_path_factory.mktemp("coordinates") / "ethanol.html"
    found.to_html(path)
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_of_coordinates_fits_its_window_and_shows_its_images(browser, coordinates, width, scheme):
    browser.get_log("browser")
    show(browser, coordinates, width, scheme)
    assert browser.get_log("browser") == []
    inside, total = widths(browser)
    assert total <= inside == width
    images, broken = browser.execute_async_script(
        "const done = arguments[0], all = [...document.querySelectorAll('svg image')];"
        "Promise.allSettled(all.map(e => { const i = new Image(); i.src = e.href.baseVal; return i.decode(); }))"
        ".then(r => done([all.length, r.filter(x => x.status === 'rejected').length]))"
    )
    assert images >= 6  # three pictures of the manifold and three planes
    assert broken == 0
    save(browser, f"coordinates-{width}-{scheme}.png")


def brightness(colour):
    numbers = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(float(x) for x in numbers) / 3
