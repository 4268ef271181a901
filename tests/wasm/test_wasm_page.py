"""The page of build/wasm in a browser, opened from its file: a picture is dropped, chosen and pasted, denoised, compared with the
program's result, saved; work is cancelled; nothing is fetched; keyboard, phone, light and dark, accessibility.

Needs build/wasm (make wasm), the program, and what tests/page/test_browser.py needs; skipped with the reason where one is missing,
failed where UNGRAIN_REQUIRE names "wasm".
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

for folder in ("wasm", "page"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))
import wasm_build  # noqa: E402
from wasm_build import PAGE, assert_near, by_program, load_png, noisy, save_png  # noqa: E402

missing = wasm_build.why_not()
if missing and "wasm" not in os.environ.get("UNGRAIN_REQUIRE", ""):
    pytest.skip(missing, allow_module_level=True)

from test_browser import browser  # noqa: E402, F401
from test_view_page import axe_source  # noqa: E402

DROP = """
const [name, type, text, how] = arguments;
const file = new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name, { type });
const data = new DataTransfer();
data.items.add(file);
if (how === "drop") {
  document.body.dispatchEvent(new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true }));
  window.was_offered = !document.querySelector("#drop").hidden;
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
} else {
  document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
}
"""
PIXELS = """
const canvas = document.querySelector(arguments[0]);
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
let text = "";
for (let i = 0; i < data.length; i += 32768) text += String.fromCharCode(...data.subarray(i, i + 32768));
return [canvas.width, canvas.height, btoa(text)];
"""


class Page:
    def __init__(self, driver, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads
        driver.get_log("browser"), driver.get_log("performance")  # what was before
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        driver.get(PAGE.as_uri())
        self.until(lambda: self.element("#choose").is_enabled())

    def element(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def run(self, script: str, *values):
        return self.driver.execute_script(script, *values)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def until(self, condition, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (self.text("#said"), self.text("#failure"), self.driver.get_log("browser"))
            time.sleep(0.05)

    def set(self, selector: str, value: str) -> None:
        self.run("const [s, v] = arguments; const e = document.querySelector(s); e.value = v;"
                 "e.dispatchEvent(new Event('change', { bubbles: true }))", selector, value)

    def give(self, file: Path, how: str = "drop", kind: str = "image/png") -> None:
        self.run(DROP, file.name, kind, base64.b64encode(file.read_bytes()).decode(), how)

    def done(self) -> "Page":
        self.until(lambda: self.text("#said").startswith("Done") or self.text("#failure"))
        assert self.text("#failure") == ""
        return self

    def again(self) -> "Page":
        self.run("document.querySelector('#said').textContent = ''")
        self.element("#run").click()
        return self.done()

    def pixels(self, canvas: str = "#after") -> np.ndarray:
        width, height, text = self.run(PIXELS, canvas)
        return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def page(browser, tmp_path) -> Page:  # noqa: F811
    return Page(browser, tmp_path)


@pytest.fixture
def picture(tmp_path) -> Path:
    return save_png(tmp_path / "holiday.v2.png", noisy(240, 180, 3))


def test_a_dropped_picture_is_denoised_as_the_program_does(page, picture, tmp_path) -> None:
    page.give(picture)
    assert page.run("return window.was_offered")
    page.done()
    assert "240 × 180 pixels, RGB" in page.text("#about")
    assert np.array_equal(page.pixels("#before")[..., :3], noisy(240, 180, 3))
    assert_near(page.pixels()[..., :3], by_program(tmp_path, noisy(240, 180, 3)), "bm3d")
    assert "sigma" in page.text("#used-rows")


def test_nothing_is_fetched_and_nothing_is_complained_of(page, picture) -> None:
    page.give(picture)
    page.done()
    requests = [json.loads(entry["message"])["message"]["params"]["request"]["url"] for entry in page.driver.get_log("performance")
                if '"Network.requestWillBeSent"' in entry["message"]]
    assert requests and not [url for url in requests if not url.startswith(("file:///", "data:", "blob:"))]
    assert page.complaints() == []
    # The policy forbids it, too.
    assert page.driver.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org').then(() => done('fetched'), (error) => done(error.name))") == "TypeError"
    assert any("Content Security Policy" in line for line in page.complaints())


@pytest.mark.parametrize(("method", "values"), [
    ("bilateral", {"radius": "3", "sigma_range": "40"}), ("median", {"radius": "2"}), ("gaussian", {"sigma": "1.5"}), ("nlm", {})])
def test_methods_with_their_parameters(page, picture, tmp_path, method, values) -> None:
    page.give(picture)
    page.done()
    page.set("#method", method)
    for name, value in values.items():
        page.set(f"#parameter-{name}", value)
    page.again()
    options = [word for name, value in values.items() for word in ("--" + name.replace("_", "-"), value)]
    assert_near(page.pixels()[..., :3], by_program(tmp_path, noisy(240, 180, 3), "--method", method, *options), method)


def test_gray_pictures_stay_gray(page, tmp_path) -> None:
    pixels = noisy(200, 150, 1)
    page.give(save_png(tmp_path / "gray.png", pixels), "paste")
    page.done()
    assert "gray" in page.text("#about")
    clean = page.pixels()
    assert (clean[..., 0] == clean[..., 1]).all() and (clean[..., 0] == clean[..., 2]).all() and (clean[..., 3] == 255).all()
    assert_near(clean[..., :1], by_program(tmp_path, pixels), "bm3d")


def test_several_workers_give_the_bits_of_one(page, picture) -> None:
    page.give(picture)
    page.done()
    for method in ("bilateral", "bm3d"):
        same = page.driver.execute_async_script(
            "const [method, done] = arguments; const s = { method, values: {}, noise: {} };"
            "(async () => { const one = await team.denoise(picture, s, { workers: 1 });"
            "const three = await team.denoise(picture, s, { workers: 3 });"
            "done([three.workers, one.samples.every((value, i) => value === three.samples[i])]); })().catch((e) => done(String(e)))", method)
        assert same == [3, True]


def test_a_chosen_picture_is_saved_as_png(page, picture, tmp_path) -> None:
    page.element("#file").send_keys(str(picture))
    page.done()
    page.element("#save").click()
    saved = tmp_path / "holiday.v2.ungrain.png"
    page.until(saved.is_file, 20)
    pixels = load_png(saved)
    assert np.array_equal(pixels[..., :3], page.pixels()[..., :3])


def test_work_is_cancelled_and_can_be_done_again(page, tmp_path) -> None:
    large = save_png(tmp_path / "large.png", noisy(1500, 1100, 3))
    page.give(large)
    page.until(lambda: page.element("#cancel").is_enabled())
    page.until(lambda: page.run("return document.querySelector('#progress').value") > 0)
    page.element("#cancel").click()
    assert page.text("#said") == "Cancelled."
    assert not page.element("#cancel").is_enabled() and page.element("#run").is_enabled() and not page.element("#save").is_enabled()
    page.set("#method", "box")
    page.again()
    assert page.element("#save").is_enabled()
    # By the keyboard, and a new picture ends the work on the old one.
    page.set("#method", "bm3d")
    page.element("#run").click()
    page.until(lambda: page.element("#cancel").is_enabled())
    page.element("body").send_keys("\ue00c")  # Escape
    page.until(lambda: page.text("#said") == "Cancelled.")
    page.element("#run").click()
    page.give(save_png(tmp_path / "small.png", noisy(64, 48, 1)))
    page.done()
    assert page.pixels().shape == (48, 64, 4)
    assert page.complaints() == []


def test_what_is_wrong_is_said(page, picture, tmp_path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no picture")
    page.give(text, kind="text/plain")
    page.until(lambda: page.text("#failure"))
    assert page.text("#failure") == "notes.txt: no picture that this browser can read"
    page.give(picture)
    page.done()
    page.set("#method", "bm3d")
    page.set("#parameter-sigma", "loud")
    page.element("#run").click()
    page.until(lambda: page.text("#failure"))
    assert page.text("#failure").startswith("holiday.v2.png: ") and "sigma" in page.text("#failure")
    page.set("#parameter-sigma", "10")
    page.again()


def test_a_lack_of_memory_is_one_line(page, picture) -> None:
    """A picture whose samples the module cannot hold."""
    page.give(picture)
    page.done()
    said = page.driver.execute_async_script(
        "const done = arguments[0]; const samples = new Uint8Array(64);"
        "team.denoise({ ...picture, width: 60000, height: 60000, samples }, { method: 'box', values: {}, noise: {} }, { workers: 1 })"
        ".then(() => done('made'), (error) => done([error.memory, error.message]))")
    assert said[0] is True and "memory" in said[1] and "\n" not in said[1]
    page.again()  # with new workers


def test_before_and_after(page, picture) -> None:
    page.give(picture)
    page.done()
    clip = "return document.querySelector('#after').style.clipPath"
    slider = page.element("#split")
    before = page.run(clip)
    slider.send_keys("\ue012" * 10)  # left
    assert page.run(clip) != before and page.run("return document.querySelector('#split').value") == "45"
    page.element("input[value=side]").send_keys(" ")
    assert page.run(clip) == "" and not slider.is_displayed()
    left, right = (page.element(canvas).rect for canvas in ("#before", "#after"))
    assert left["x"] + left["width"] <= right["x"] and left["y"] == right["y"]
    page.set("#zoom", "2")
    assert page.element("#before").rect["width"] == 480


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 360])
def test_rules_of_accessibility(page, picture, width, dark) -> None:
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]})
    assert (page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 26)") == dark
    follows_rules(page, "empty")
    page.give(picture)
    page.done()
    page.run("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    follows_rules(page, "with a result")
    page.set("#parameter-sigma", "loud")
    page.element("#run").click()
    page.until(lambda: page.text("#failure"))
    follows_rules(page, "with a failure")


def follows_rules(page: Page, what: str) -> None:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is not in build/venv (PyPI: axe-core-python)")
    page.run(source + "\nwindow.axe = axe;")
    broken = page.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.passes.length < 15 ? 'too few rules ran' : r.violations.map((v) =>"
        " [v.id, v.help, ...v.nodes.slice(0, 4).map((n) => n.html + ' ' + (n.any[0]?.message ?? n.failureSummary))])),"
        " (error) => done(String(error)))")
    assert broken == [], what
