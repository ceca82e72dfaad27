"""The page in a real browser: it loads without an error, its switches redraw, and a method can be hidden."""

import itertools
import shutil
import time

import numpy as np
import pytest

from onesfw import zoo
from onesfw.experiments import Comparison, Curve, Report, write_page
from onesfw.experiments.page import Section
from onesfw.results.show import Sheet

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1400",
)


def made(name, exponent, measures):
    """A curve without a run: the page only draws."""
    counts = np.rint(np.geomspace(1e2, 1e5, 13)).astype(int)
    rng = np.random.default_rng(0)
    errors = counts.astype(float) ** exponent * np.exp(0.2 * rng.standard_normal((5, 13)))
    columns = {"samples": counts, "gradients": 2 * counts, "hvps": 0 * counts, "lmo_calls": counts // 3}
    seconds = np.broadcast_to(counts * 1e-6, (5, 13))
    return Curve(name, f"{name} (made)", "someone", counts, columns, seconds, dict.fromkeys(measures, errors))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    convex = Comparison(zoo.get("quadratic-face"), 100_000, 5)
    convex.curves = [made("one_sfw", -1.0, ["suboptimality", "gap", "value"])]
    convex.curves += [made(n, -0.5, ["suboptimality", "gap", "value"]) for n in ("momentum_sfw", "spider_fw")]
    convex.skipped = {"svrf": "a reason with <angle> & brackets"}
    submodular = Comparison(zoo.get("nqp"), 10_000, 5)
    submodular.curves = [made("one_sfw", -1.0, ["gradient_error", "regret", "value"])]
    submodular.curves[0].measures["regret"] = submodular.curves[0].measures["regret"] ** 0.05 / 2
    row = ("one_sfw", "Zhang, Shen, Mokhtari 2020", "1", "−0.50 [−0.61, −0.39]; in gradients −0.50 [−0.61, −0.39]")
    heads = ("method", "reference", *(f"slope in samples of problem {k}" for k in range(8)))
    wide = Sheet("", heads, [(*row[:2], *row[3:] * 8)], words=2)
    section = Section("A section", ["Words with `code`."], [wide])
    place = tmp_path_factory.mktemp("page") / "page.html"
    write_page(Report("Methods compared", "A lead.", "onesfw compare made-up", [convex, submodular], [section]), place)
    return place


@pytest.fixture(scope="module")
def browser(path, tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with its driver: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(DRIVER))
    try:
        driver.get(path.as_uri())
        until(lambda: driver.execute_script("return document.querySelectorAll('#plot .js-line').length > 0"))
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


def state(browser):
    """What the plot shows: axis titles, the x of the first line, and the visible lines."""
    return browser.execute_script("""
        const plot = document.getElementById("plot");
        const lines = plot._fullData.filter((t) => t.uid.startsWith("line-"));
        return {
          x: plot.layout.xaxis.title.text, y: plot.layout.yaxis.title.text, type: plot._fullLayout.yaxis.type,
          end: lines[0].x[lines[0].x.length - 1], shown: lines.filter((t) => t.visible === true).map((t) => t.name),
          bands: plot._fullData.filter((t) => t.uid.startsWith("band-") && t.visible === true).length,
        };
    """)


def press(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_it_loads_without_a_word_on_the_console(browser):
    assert browser.title == "Methods compared"
    assert browser.get_log("browser") == []
    seen = state(browser)
    assert (seen["x"], seen["y"], seen["end"]) == ("samples", "F(x) − F*", 100_000)
    assert seen["shown"] == ["one_sfw", "momentum_sfw", "spider_fw"]
    assert seen["bands"] == 3
    text = browser.find_element("tag name", "body").text
    for words in ("onesfw compare made-up", "5 seeds folded from key 0", "a reason with <angle> & brackets", "jax"):
        assert words in text
    rows = browser.find_elements("css selector", "#table tbody tr")
    assert [row.text.split()[0] for row in rows] == ["one_sfw", "momentum_sfw", "spider_fw"]


def test_nothing_overlaps_and_nothing_is_cut_off(browser):
    boxes = browser.execute_script("""
        const box = (s) => document.querySelector(s).getBoundingClientRect();
        return ["#summary", "#plot", "#table", "#note"].map((s) => [box(s).top, box(s).bottom, box(s).right]);
    """)
    for (_, bottom, _), (top, _, _) in itertools.pairwise(boxes):
        assert bottom <= top + 1
    assert max(right for _, _, right in boxes) <= 1280
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_the_switch_of_the_axis_redraws(browser):
    for name, title, end in (
        ("gradients", "gradient evaluations", 200_000),
        ("lmo_calls", "LMO calls", 33_333),
        ("seconds", "seconds", 0.1),
        ("samples", "samples", 100_000),
    ):
        press(browser, f"#axis [data-name={name}]")
        until(lambda title=title: state(browser)["x"] == title)
        assert state(browser)["end"] == pytest.approx(end)
        pressed = browser.find_elements("css selector", "#axis [aria-pressed=true]")
        assert [button.get_attribute("data-name") for button in pressed] == [name]


def test_the_measure_and_the_bands_can_be_changed(browser):
    press(browser, "#measure [data-name=value]")
    until(lambda: state(browser)["y"] == "F(x)")
    assert state(browser)["type"] == "linear"
    press(browser, "#measure [data-name=suboptimality]")
    until(lambda: state(browser)["type"] == "log")
    press(browser, "#bands")
    until(lambda: state(browser)["bands"] == 0)
    press(browser, "#bands")
    until(lambda: state(browser)["bands"] == 3)


def test_a_click_in_the_legend_hides_a_method_and_a_redraw_keeps_it_hidden(browser):
    from selenium.webdriver.common.action_chains import ActionChains

    entry = browser.find_elements("css selector", "#plot .legendtoggle")[1]
    ActionChains(browser).move_to_element(entry).click().perform()
    until(lambda: state(browser)["shown"] == ["one_sfw", "spider_fw"])
    assert state(browser)["bands"] == 2
    press(browser, "#axis [data-name=lmo_calls]")
    until(lambda: state(browser)["x"] == "LMO calls")
    assert state(browser)["shown"] == ["one_sfw", "spider_fw"]
    ActionChains(browser).pause(0.5).move_to_element(
        browser.find_elements("css selector", "#plot .legendtoggle")[1]
    ).click().perform()
    until(lambda: len(state(browser)["shown"]) == 3)
    press(browser, "#axis [data-name=samples]")


def test_another_problem_brings_its_own_measures_and_table(browser):
    choose = (
        "const s = document.getElementById('problem'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))"
    )
    browser.execute_script(choose, "1")
    until(lambda: state(browser)["y"] == "‖d_T − ∇F(x_T)‖²")
    assert state(browser)["shown"] == ["one_sfw"]
    assert len(browser.find_elements("css selector", "#table tbody tr")) == 1
    assert "Not applicable" not in browser.find_element("id", "skipped").text
    press(browser, "#measure [data-name=regret]")  # which hardly falls: less than a decade in all
    until(lambda: state(browser)["y"] == "oracle's regret")
    labels = browser.find_elements("css selector", "#plot .ytick text")
    assert len([label for label in labels if label.text.strip()]) >= 2
    press(browser, "#measure [data-name=gradient_error]")
    browser.execute_script(choose, "0")
    until(lambda: len(state(browser)["shown"]) == 3)
    assert browser.get_log("browser") == []


def media(browser, scheme):
    """Ask the page for a colour scheme, as the system would."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def brightness(browser):
    """Of the page, the card, the plot's paper, and its darkest and lightest line: 0 black, 255 white."""
    return browser.execute_script("""
        const light = (c) => { const p = c.match(/[\\d.]+/g).map(Number); return (p[0] + p[1] + p[2]) / 3; };
        const hex = (c) => light([1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)).join(" "));
        const of = (s, what) => light(getComputedStyle(document.querySelector(s))[what]);
        const plot = document.getElementById("plot");
        const lines = plot._fullData.filter((t) => t.uid.startsWith("line-")).map((t) => hex(t.line.color));
        return { page: of("body", "backgroundColor"), text: of("body", "color"), card: of(".panel", "backgroundColor"),
                 paper: hex(plot._fullLayout.paper_bgcolor), lines: Math.min(...lines) };
    """)


def test_the_page_follows_the_systems_dark_mode(browser):
    day = brightness(browser)
    assert min(day["page"], day["card"], day["paper"]) > 200 > 100 > day["text"]
    media(browser, "dark")
    try:
        until(lambda: brightness(browser)["paper"] < 60)
        night = brightness(browser)
        assert max(night["page"], night["card"], night["paper"]) < 60 < 180 < night["text"]
        assert night["lines"] > night["paper"] + 40
    finally:
        media(browser, "light")
    until(lambda: brightness(browser)["paper"] > 200)


def test_legend_and_table_have_one_order(browser):
    legend = [entry.text for entry in browser.find_elements("css selector", "#plot .legendtext")]
    rows = [row.text.split()[0] for row in browser.find_elements("css selector", "#table tbody tr")]
    assert legend == rows


def test_a_phone_is_told_that_a_table_goes_on(browser):
    said = "return getComputedStyle(document.querySelector('.panel .scroll'), '::before').content"
    inside = """
        const box = document.querySelector("section .scroll");
        return box.scrollWidth <= box.clientWidth && document.documentElement.scrollWidth <= window.innerWidth
    """
    assert browser.execute_script(said) == "none"
    assert browser.execute_script(inside)  # many columns, the last one within the card
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        until(lambda: "scroll sideways" in browser.execute_script(said))
        fits = "return document.documentElement.scrollWidth <= window.innerWidth"
        until(lambda: browser.execute_script(fits))  # the plot follows a moment later
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    until(lambda: browser.execute_script(said) == "none")
