"""The built site in a real browser: nothing on the console, nothing from another host, text that can be read, no
sideways scroll on a phone; and a page for every public name. `make site` builds out/site and runs this."""

import functools
import http.server
import importlib
import inspect
import json
import re
import shutil
import threading
import time
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "out" / "site"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
PACKAGE = ROOT / "src" / "onesfw"
ROOMS = [
    "",
    *sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py") if "__all__" in p.read_text(encoding="utf-8")),
]
PHONE = 375
CONTRAST = 4.5
FIRST = 12  # results of a search that somebody reads
WIDEST_PICTURE = 5.6 * 150 + 30  # pixels; a wider one has letters that nobody reads on a phone
SLOWEST = 40.0  # processor seconds of an example: 20 on the machine of docs/measurements.md, twice that on slower ones

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="there is no site in out/site: run `make site`"),
]


def pages(pattern: str) -> list[str]:
    return sorted(path.relative_to(SITE).as_posix() for path in SITE.glob(pattern))


GALLERY = pages("gallery/plot_*.html")
THREE = [GALLERY[i] for i in (0, len(GALLERY) // 2, -1)] if GALLERY else []
MORE = ["gallery/index.html", "api/onesfw.minimize.html", "design.html"]
SEEN = ["index.html", "gallery/index.html", "api/onesfw.minimize.html", "api/onesfw.sets.L1Ball.html", *pages("*.html")]


@pytest.fixture(scope="module")
def address():
    """The site on a port of this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with its driver: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def until(happens, seconds=20):
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def visit(browser, address, page):
    """Load a page to its end, formulas too."""
    browser.get(f"{address}/{page}")
    until(lambda: browser.execute_script("return document.readyState") == "complete")
    typeset = """
        return !document.querySelector("span.math, div.math") ||
               (window.MathJax && MathJax.startup && document.querySelector("mjx-container") !== null)
    """
    until(lambda: browser.execute_script(typeset))


def requested(browser):
    """The addresses that were asked for since the last time."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if urlsplit(url).scheme not in ("data", "blob", "about", "chrome")]


def media(browser, scheme):
    """Ask the page for a colour scheme, as the system would."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def faint(browser):
    """Texts whose contrast to what lies behind them is too low, each with the figure."""
    return browser.execute_script(
        """
        const numbers = (c) => { const p = c.match(/[\\d.]+/g).map(Number); return [p[0], p[1], p[2], p[3] ?? 1]; };
        const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
        const light = (c) => c.slice(0, 3).map((v) => v / 255)
          .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
          .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const behind = (node) => {
          const layers = [];
          for (let e = node; e; e = e.parentElement) {
            const c = numbers(getComputedStyle(e).backgroundColor);
            if (c[3] > 0) layers.push(c);
            if (c[3] === 1) break;
          }
          return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
        };
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const found = {};
        while (walker.nextNode()) {
          const text = walker.currentNode.textContent.trim(), box = walker.currentNode.parentElement;
          if (!text || !box || !box.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
          if (["SCRIPT", "STYLE", "NOSCRIPT", "TITLE"].includes(box.tagName) || !box.getClientRects().length) continue;
          const back = behind(box), ink = over(numbers(getComputedStyle(box).color), back);
          const [low, high] = [light(back), light(ink)].sort((a, b) => a - b);
          const ratio = (high + 0.05) / (low + 0.05);
          const name = `${box.tagName}.${box.className} ${ink} on ${back}`;
          if (ratio < arguments[0]) found[name] = `${text.slice(0, 30)}: ${ratio.toFixed(2)}`;
        }
        return found;
        """,
        CONTRAST,
    )


@pytest.mark.parametrize("page", dict.fromkeys([*SEEN, *GALLERY]))
def test_a_page_loads_quietly_and_from_here_alone(browser, address, page):
    requested(browser)
    browser.get_log("browser")
    visit(browser, address, page)
    assert browser.get_log("browser") == []
    asked = requested(browser)
    assert asked, "the log of requests is empty"
    assert {url for url in asked if not url.startswith(address + "/")} == set()


@pytest.mark.parametrize("page", dict.fromkeys([*SEEN, *GALLERY]))
def test_a_phone_does_not_scroll_sideways(browser, address, page):
    size = {"width": PHONE, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        visit(browser, address, page)
        wide = browser.execute_script(
            """
            window.scrollTo(500, 0);
            const all = [...document.querySelectorAll("article *")];
            const far = all.filter((e) => e.getBoundingClientRect().right > arguments[0] + 1).slice(0, 3);
            const names = far.map((e) => `${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 40)}`);
            return { moved: window.scrollX, width: document.documentElement.scrollWidth, names };
            """,
            PHONE,
        )
        assert (wide["moved"], wide["width"]) == (0, PHONE), wide["names"]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "page", ["index.html", *THREE, "gallery/index.html", "api/onesfw.minimize.html", "design.html"]
)
def test_text_can_be_read(browser, address, page, scheme):
    media(browser, scheme)
    try:
        visit(browser, address, page)
        dark = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0] < 60"
        assert browser.execute_script(dark) == (scheme == "dark")
        assert faint(browser) == {}
    finally:
        media(browser, "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", *THREE])
def test_each_picture_is_shown_once_and_in_the_pages_colours(browser, address, page, scheme):
    media(browser, scheme)
    try:
        visit(browser, address, page)
        shown = browser.execute_script("""
            const all = [...document.querySelectorAll("article img.only-light, article img.only-dark")];
            const seen = all.filter((i) => i.checkVisibility());
            return { all: all.length, seen: seen.map((i) => [i.className, i.naturalWidth, i.alt]) };
        """)
        assert shown["all"] == 2 * len(shown["seen"]) > 0
        for classes, width, alt in shown["seen"]:
            assert f"only-{scheme}" in classes
            assert 0 < width <= WIDEST_PICTURE
            assert len(alt) > 10
    finally:
        media(browser, "light")


def test_the_landing_page_leads_to_its_three_entries(browser, address):
    visit(browser, address, "index.html")
    cards = browser.find_elements("css selector", "article a.sd-stretched-link")
    targets = [urlsplit(card.get_attribute("href")).path for card in cards]
    assert targets == ["/streaming.html", "/submodular.html", "/comparing.html"]
    for target in targets:
        assert (SITE / target.lstrip("/")).exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["gallery/index.html", "api/onesfw.minimize.html"])
def test_each_small_picture_is_drawn_for_the_pages_colours(browser, address, page, scheme):
    media(browser, scheme)
    try:
        visit(browser, address, page)
        shown = browser.execute_script("""
            const boxes = [...document.querySelectorAll(".sphx-glr-thumbcontainer")];
            const seen = boxes.map((box) => [...box.querySelectorAll("img")].filter((i) => i.checkVisibility()));
            return seen.map((images) => images.map((i) => [i.getAttribute("src"), i.className]));
        """)
        assert shown
        for images in shown:
            ((source, classes),) = images
            if classes:  # an example that was not run has one picture for all pages
                assert source.endswith("-dark.png") == (scheme == "dark")
                assert f"only-{scheme}" in classes
        assert any(classes for ((_, classes),) in shown)
    finally:
        media(browser, "light")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("radius_path", "radius_path"),
        ("matroid", "matroid"),
        ("lasso radius", "linear models"),
        ("k-medoids", "pick k of n things"),
        ("portfolio", "a portfolio for bad days"),
        ("matrix completion", "filling in a matrix"),
        ("stop after one minute", "getting started"),
        ("Frank-Wolfe gap", "the frank-wolfe gap"),
        ("custom loss", "getting started"),
        ("checkpoint", "checkpoints and kills"),
        ("GPU", "many runs"),
        ("policy gradient", "policy gradient on a frozen lake"),
        ("optimal transport", "assignment from noisy costs"),
        ("collaborative filtering", "matrices of low rank"),
        ("confidence interval", "how sure is a coefficient"),
        ("feature selection", "many runs"),
        ("hyperparameter", "choosing a radius"),
        ("multiclass", "several classes from a file"),
        ("outliers", "robust regression"),
    ],
)
def test_the_search_box_finds(browser, address, words, found):
    from selenium.webdriver.common.keys import Keys

    browser.get_log("browser")
    visit(browser, address, "index.html")
    box = browser.find_element("css selector", "input[name=q]")
    box.send_keys(words, Keys.ENTER)
    until(lambda: "search.html" in browser.current_url)
    until(lambda: browser.find_elements("css selector", "#search-results li a"))
    links = browser.find_elements("css selector", "#search-results li a")
    assert any(found in link.text.lower() for link in links[:FIRST])
    assert browser.get_log("browser") == []


def test_a_result_opens_with_its_words_marked_and_no_error(browser, address):
    browser.get_log("browser")
    visit(browser, address, "search.html?q=dark+mode")  # icons of the theme are called so
    until(lambda: browser.find_elements("css selector", "#search-results li a"))
    browser.find_element("css selector", "#search-results li a").click()
    until(lambda: browser.find_elements("css selector", "span.highlighted"))
    assert browser.get_log("browser") == []


def names_with_pages():
    """The names of the inventory, which other sites link to as well."""
    data = (SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(data).decode().splitlines()}


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room):
    module = importlib.import_module(f"onesfw.{room}".rstrip("."))
    listed = names_with_pages()
    first = importlib.import_module("onesfw")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.ismodule(thing) or (room and getattr(first, name, None) is thing):
            continue
        assert ".".join(part for part in ("onesfw", room, name) if part) in listed, name


def test_the_gallery_and_the_reference_lead_to_one_another():
    links = {
        page: set(re.findall(r'href="\.\./(api/onesfw\.[\w.-]+\.html)#', (SITE / page).read_text(encoding="utf-8")))
        for page in GALLERY
    }
    assert sum(map(len, links.values())) > 3 * len(GALLERY)
    for page, names in links.items():
        for name in names:
            assert Path(page).name in (SITE / name).read_text(encoding="utf-8"), f"{name} does not lead to {page}"


@pytest.mark.parametrize("page", GALLERY)
def test_an_example_neither_warns_nor_shows_paths_of_the_machine(page):
    text = (SITE / page).read_text(encoding="utf-8")
    assert "site-packages" not in text
    assert "Warning: " not in text
    assert str(ROOT) not in text
    assert "sk-top-container" not in text, "an estimator's own widget, which knows no dark page"


def test_no_example_is_slow():
    """What `stopwatch` noted, of processor time: on a busy machine the clock says as much about other programs."""
    noted = json.loads((ROOT / "docs" / "gallery" / "seconds.json").read_text(encoding="utf-8"))
    times = {page: noted[Path(page).stem] for page in GALLERY if Path(page).stem in noted}
    assert times
    assert {page: seconds for page, seconds in times.items() if seconds > SLOWEST} == {}
