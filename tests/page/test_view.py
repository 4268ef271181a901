"""ungrain view in a browser, with its real server: the pixels on the screen are those that the program writes.

test_view_page.py tests the page itself against a stand-in for the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from support import PROGRAM, picture, read_pnm, volume, write_nifti, write_pnm  # noqa: E402
from test_browser import browser, why_not  # noqa: E402, F401

if why_not() and "browser" not in os.environ.get("UNGRAIN_REQUIRE", ""):
    pytest.skip(why_not(), allow_module_level=True)
WIDTH, HEIGHT = 320, 240


class Server:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen([PROGRAM, "view", folder, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.address = self.process.stdout.readline().decode().strip()


@pytest.fixture
def server(tmp_path):
    for name in ("a.ppm", "b.ppm", "c.ppm"):
        write_pnm(tmp_path / name, picture(WIDTH, HEIGHT, 3, seed=ord(name[0])))
    started = Server(tmp_path)
    if not started.address:
        reason = started.process.communicate()[1].decode().strip()
        assert "this build has no view" in reason, reason
        pytest.skip(reason)
    yield started
    started.process.terminate()
    assert started.process.wait(30) == 0


class Page:
    def __init__(self, driver, address: str) -> None:
        self.driver = driver
        driver.set_script_timeout(120)
        driver.get("about:blank")
        driver.get(address)
        self.idle()

    def started(self) -> None:
        self.driver.execute_async_script(
            "const done = arguments[0]; const wait = () => window.ungrain_view ? done() : setTimeout(wait, 20); wait();")

    def idle(self) -> None:
        self.started()
        self.driver.execute_async_script("const done = arguments[0]; window.ungrain_view.idle().then(() => done());")

    def state(self) -> dict:
        return self.driver.execute_script("return JSON.parse(JSON.stringify(window.ungrain_view.state()));")

    def pixel(self, x: int, y: int, side: str) -> list[int]:
        return list(self.driver.execute_script("return Array.from(window.ungrain_view.pixel(arguments[0], arguments[1], arguments[2]));",
                                               x, y, side))

    def key(self, text: str) -> None:
        from selenium.webdriver.common.by import By
        self.driver.find_element(By.CSS_SELECTOR, "canvas").send_keys(text)


def at_full_size(page: Page) -> None:
    page.key("1")
    page.idle()
    assert page.state()["zoom"] == 1


def saved(folder: Path, name: str, *words: str):
    out = folder.parent / f"{folder.name}-out.ppm"
    subprocess.run([PROGRAM, folder / name, "-o", out, "-q", *words], check=True)
    return read_pnm(out)


def rgb(image, x: int, y: int) -> list[int]:
    at = (y * image.width + x) * 3
    return [int(value) for value in image.samples[at:at + 3]]


def set_option(page: Page, label: str, value: str, wait: bool = True) -> None:
    """Sets a control by its label, as a user would, and waits for the new pixels."""
    page.driver.execute_script(
        "const [label, value] = arguments;"
        "for (const details of document.querySelectorAll('details')) details.open = true;"
        "const fields = [...document.querySelectorAll('input, select')].filter((one) => one.type !== 'range' &&"
        "  [...(one.labels ?? [])].some((text) => text.textContent.trim().toLowerCase().startsWith(label)));"
        "if (fields.length === 0) throw new Error('no control ' + label);"
        "fields[0].value = value;"
        "fields[0].dispatchEvent(new Event('input', { bubbles: true }));"
        "fields[0].dispatchEvent(new Event('change', { bubbles: true }));", label, value)
    time.sleep(0.2)
    if wait:
        page.idle()


def test_pixels_on_the_screen_are_those_that_are_written(browser, server):
    page = Page(browser, server.address)
    at_full_size(page)
    noisy, clean = read_pnm(server.folder / "a.ppm"), saved(server.folder, "a.ppm")
    for x, y in ((20, 30), (100, 100), (140, 200)):
        assert page.pixel(x, y, "noisy")[:3] == rgb(noisy, x, y)
    for x, y in ((180, 60), (250, 200), (319, 239)):
        assert page.pixel(x, y, "clean")[:3] == rgb(clean, x, y)


def test_each_kind_of_control_changes_the_pixels(browser, server):
    page = Page(browser, server.address)
    at_full_size(page)
    set_option(page, "method", "bilateral")
    set_option(page, "strength", "0.7")
    set_option(page, "radius", "3")
    words = page.state()["words"]
    assert words[:2] == ["--method", "bilateral"] and "--strength" in words and "--radius" in words
    clean = saved(server.folder, "a.ppm", *words)
    for x, y in ((120, 90), (200, 150)):
        assert page.pixel(x, y, "clean")[:3] == rgb(clean, x, y)


def test_reload_goes_on_and_windows_are_independent(browser, server):
    page = Page(browser, server.address)
    set_option(page, "strength", "0.6")
    before = page.state()
    browser.refresh()
    page.idle()
    after = page.state()
    assert (after["words"], after["file"], after["mode"]) == (before["words"], before["file"], before["mode"])
    first = browser.current_window_handle
    browser.switch_to.new_window("window")
    other = Page(browser, server.address)
    set_option(other, "strength", "1.5")
    browser.close()
    browser.switch_to.window(first)
    page.idle()
    assert page.state()["words"] == before["words"]


def test_save_and_batch(browser, server):
    from selenium.webdriver.common.by import By
    page = Page(browser, server.address)
    set_option(page, "method", "box")
    browser.execute_script("for (const details of document.querySelectorAll('details')) details.open = true;")
    save = next(each for each in browser.find_elements(By.TAG_NAME, "button") if each.text.strip().startswith("Save"))
    browser.execute_script("arguments[0].click()", save)
    for _ in range(100):
        if (server.folder / "a.ungrain.ppm").exists():
            break
        time.sleep(0.1)
    expected = saved(server.folder, "a.ppm", "--method", "box")
    assert read_pnm(server.folder / "a.ungrain.ppm").samples == expected.samples


def test_nothing_is_logged_and_nothing_fetched_from_elsewhere(browser, server):
    browser.get_log("browser")
    browser.get_log("performance")
    Page(browser, server.address)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            assert url.startswith((server.address, "data:", "blob:", "about:")), url


def test_a_clip_is_scrubbed_and_played_as_it_is_written(browser, server):
    frames = [picture(WIDTH, HEIGHT, seed=seed) for seed in range(5)]
    data = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 Cmono\n".encode()
    (server.folder / "d.y4m").write_bytes(data + b"".join(b"FRAME\n" + bytes(frame.samples) for frame in frames))
    other = Server(server.folder / "d.y4m")
    page = Page(browser, other.address)
    at_full_size(page)
    set_option(page, "method", "bilateral")
    out = server.folder.parent / "out.y4m"
    subprocess.run([PROGRAM, "video", server.folder / "d.y4m", "-o", out, "-q", *page.state()["words"]], check=True)
    written = out.read_bytes().split(b"FRAME\n")[1:]
    for frame in (1, 2):
        page.key(".")
        page.idle()
        assert page.state()["page"] == frame
        for x, y in ((180, 60), (319, 239)):
            assert page.pixel(x, y, "clean")[:3] == [written[frame][y * WIDTH + x]] * 3
        assert page.pixel(20, 30, "noisy")[:3] == [frames[frame].samples[30 * WIDTH + 20]] * 3
    page.key("b")
    page.key("p")
    time.sleep(1)
    assert page.state()["playing"]
    page.key("p")
    page.idle()
    other.process.terminate()
    assert other.process.wait(30) == 0


def test_slices_of_a_volume(browser, server):
    write_nifti(server.folder / "e.nii", (40, 30, 8), volume(40, 30, 8), kind="u1")
    other = Server(server.folder / "e.nii")
    page = Page(browser, other.address)
    set_option(page, "method", "median")
    page.key(".")
    page.key("c")
    at_full_size(page)
    state = page.state()
    assert (state["page"], state["words"][:2]) == (1, ["--method", "median"])
    out = server.folder.parent / "out.nii"
    subprocess.run([PROGRAM, "volume", server.folder / "e.nii", "-o", out, "-q", *state["words"]], check=True)
    value = out.read_bytes()[352 + 40 * 30 + 7 * 40 + 9]
    low, high = state["window"]["low"], state["window"]["high"]
    assert abs(page.pixel(9, 7, "clean")[0] - max(0, min(255, (value - low) * 255 / (high - low)))) <= 0.5
    other.process.terminate()
    assert other.process.wait(30) == 0


def test_a_batch_is_cancelled_and_taken_up_again(browser, server):
    page = Page(browser, server.address)
    # Slow enough to be cancelled; on a busy machine the pixels on the screen take minutes.
    set_option(page, "device", "reference", wait=False)
    click = "document.querySelector(arguments[0]).click()"
    browser.execute_script(click, "#open-batch")
    browser.execute_script(click, "#batch-form [type=submit]")

    def state_becomes(*states: str) -> str:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            jobs = page.state()["jobs"]
            if jobs and jobs[-1]["state"] in states:
                return jobs[-1]["state"]
            time.sleep(0.05)
        raise AssertionError(page.state()["jobs"])

    state_becomes("running")
    browser.refresh()
    page.started()
    state_becomes("running")
    browser.execute_script(click, "#jobs [data-cancel]")
    assert state_becomes("cancelled", "done") == "cancelled"
    left = sorted(path.name for path in (server.folder / "ungrained").iterdir())
    assert all(name in ("a.ppm", "b.ppm", "c.ppm") for name in left) and len(left) < 3
    browser.execute_script(click, "#jobs [data-resume]")
    state_becomes("running")
    browser.execute_script(click, "#jobs [data-cancel]")
    state_becomes("cancelled")
