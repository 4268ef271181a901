"""The pages in a browser: they render, plots are there, the slider moves, nothing is fetched, no error is logged.

Needs Chromium with its driver (Debian: chromium, chromium-driver) and selenium; skipped with the reason where one is
missing, failed where UNGRAIN_REQUIRE names "browser".
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from support import PROGRAM, REPOSITORY, npy_bytes, picture, volume, write_nifti, write_pnm  # noqa: E402

STUDY = Path(PROGRAM).with_name("ungrain-study")
RESULTS = REPOSITORY / "tests/page/results"
PHONE = 360  # CSS pixels


def why_not() -> str:
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not in build/venv"
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        return "no Chromium on this machine"
    if not shutil.which("chromedriver"):
        return "no chromedriver on this machine"
    return ""


if why_not() and "browser" not in os.environ.get("UNGRAIN_REQUIRE", ""):
    pytest.skip(why_not(), allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                     "--disable-background-networking", "--disable-component-update"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_window_size(1200, 900)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def study_page(tmp_path_factory) -> Path:
    """Measurements like a GPU's, with pictures made here."""
    if not os.access(STUDY, os.X_OK):
        pytest.skip("ungrain-study was not built")
    folder = tmp_path_factory.mktemp("study")
    subprocess.run([STUDY, "all", "--device", "cpu", "--quick", "--ladder", "adaptive", "--json", folder / "results"],
                   check=True, capture_output=True, timeout=300)
    subprocess.run([STUDY, "report", RESULTS, folder / "results/pictures.json", "--html", folder / "page.html"], check=True, timeout=60)
    return folder / "page.html"


@pytest.fixture(scope="module")
def compare_page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    files = [write_pnm(folder / f"{name}.ppm", picture(120, 80, 3, seed))
             for seed, name in ((1, "clean"), (2, "noisy"), (3, "result"))]
    subprocess.run([PROGRAM, "compare", *files, "--html", folder / "page.html"], check=True, capture_output=True, timeout=60)
    return folder / "page.html"


VOLUME = (20, 16, 12)
SPACING = (1, 1, 2.5)


@pytest.fixture(scope="module")
def volume_page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("volume")
    files = [write_nifti(folder / f"{name}.nii.gz", VOLUME, volume(*VOLUME, seed), SPACING)
             for seed, name in ((1, "clean"), (2, "noisy"), (3, '<b>"&result'))]
    mask = write_nifti(folder / "mask.nii", VOLUME, [1 if i % 2 else 0 for i in range(20 * 16 * 12)], kind="u1")
    subprocess.run([PROGRAM, "compare", *files, "--mask", mask, "--html", folder / "page.html"], check=True, capture_output=True, timeout=60)
    return folder / "page.html"


@pytest.fixture(scope="module")
def noise_page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("noise")
    image = write_pnm(folder / "noisy.ppm", picture(160, 120, 3, 1))
    subprocess.run([PROGRAM, "estimate", image, "--plot", folder / "page.html"], check=True, capture_output=True, timeout=60)
    return folder / "page.html"


@pytest.fixture(scope="module")
def study_markup(browser, study_page) -> str:
    """The study's page as its script made it."""
    open_page(browser, study_page)
    return markup(browser)


def markup(browser) -> str:
    return browser.execute_script("return document.querySelector('main').innerHTML")


def test_noise_of_an_image(browser, noise_page) -> None:
    """Two plots, a table for each channel, and the picture with the blocks that were measured."""
    browser.get_log("browser"), browser.get_log("performance")  # what was before
    browser.get(noise_page.as_uri())
    count = "return document.querySelectorAll(arguments[0]).length"
    assert browser.execute_script(count, ".plot > svg .line") == 6
    assert browser.execute_script(count, "table") == 3
    assert browser.execute_script(count, "svg image") == 1
    assert browser.execute_script(count, "svg .block") > 20
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
    assert urls and all(url.startswith(("file:", "data:")) for url in urls), urls
    assert browser.get_log("browser") == []


@pytest.fixture(params=["study", "compare"])
def page(request) -> Path:
    return request.getfixturevalue(f"{request.param}_page")


@pytest.fixture(params=["study", "compare", "volume"])
def any_page(request) -> Path:
    return request.getfixturevalue(f"{request.param}_page")


def open_page(browser, page: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get_log("browser"), browser.get_log("performance")  # what was before
    browser.get(page.as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.execute_script("return document.querySelector('.viewer.live') !== null"))


def colour_at(browser, share: float) -> list[int]:
    """The canvas's colour at that share of its width, in the middle of its height."""
    return browser.execute_script(
        "const c = document.querySelector('.viewer canvas');"
        "return [...c.getContext('2d').getImageData(c.width * arguments[0], c.height / 2, 1, 1).data]", share)


def line_at(browser) -> float:
    """Where the split is drawn, as a share of the width: the white line across both pictures."""
    return browser.execute_script(
        "const c = document.querySelector('.viewer canvas');"
        "for (let x = 0; x < c.width; ++x) {"
        "  const column = c.getContext('2d').getImageData(x, 0, 1, c.height).data;"
        "  if (column.every((value) => value === 255)) return x / c.width;"
        "} return -1;")


def choose(browser, what: str, value: str) -> None:
    browser.execute_script(
        "const s = document.querySelector(`.viewer [data-choose=\"${arguments[0]}\"]`);"
        "s.value = arguments[1]; s.dispatchEvent(new Event('change'));", what, value)


def move_slider(browser, share: float) -> None:
    browser.execute_script(
        "const s = document.querySelector('.viewer .split'); s.value = 1000 * arguments[0];"
        "s.dispatchEvent(new Event('input'));", share)


def test_nothing_is_fetched_and_nothing_is_wrong(browser, any_page) -> None:
    open_page(browser, any_page)
    choose(browser, "mode", "difference")
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
    assert urls and all(url.startswith(("file:", "data:")) for url in urls), urls
    assert sum(url.startswith("file:") for url in urls) == 1
    assert browser.get_log("browser") == []


def test_slider_moves(browser, page) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    open_page(browser, page)
    for share in (0.25, 0.8):
        move_slider(browser, share)
        assert abs(line_at(browser) - share) < 0.01
    canvas = browser.find_element("css selector", ".viewer canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(browser).move_to_element(canvas).click_and_hold().move_by_offset(-200, 0).release().perform()
    width = canvas.size["width"]
    assert abs(line_at(browser) - (0.5 - 200 / width)) < 0.02
    value = float(browser.execute_script("return document.querySelector('.viewer .split').value")) / 1000
    assert abs(value - (0.5 - 200 / width)) < 0.02


def test_left_and_right_are_the_chosen_pictures(browser, page) -> None:
    """With the same picture on both sides the slider changes nothing, with two it does."""
    open_page(browser, page)
    choose(browser, "left", "0")
    choose(browser, "right", "0")
    seen = []
    for share in (0.1, 0.9):
        move_slider(browser, share)
        seen.append([colour_at(browser, 0.3 + i / 50) for i in range(10)])
    assert seen[0] == seen[1]
    choose(browser, "right", "1")
    move_slider(browser, 0.9)
    left = [colour_at(browser, 0.3 + i / 50) for i in range(10)]
    move_slider(browser, 0.1)
    right = [colour_at(browser, 0.3 + i / 50) for i in range(10)]
    assert left == seen[0] and left != right


def test_difference_is_gray_where_pictures_agree(browser, page) -> None:
    open_page(browser, page)
    choose(browser, "left", "1")
    choose(browser, "right", "1")
    choose(browser, "mode", "difference")
    assert all(colour_at(browser, i / 10) == [128, 128, 128, 255] for i in range(1, 10))
    choose(browser, "left", "0")
    seen = [colour_at(browser, i / 100) for i in range(1, 100)]
    assert len({tuple(colour) for colour in seen}) > 5


def test_zoom_shows_pixels(browser, page) -> None:
    open_page(browser, page)
    choose(browser, "zoom", "8")
    move_slider(browser, 0)
    same = browser.execute_script(
        "const c = document.querySelector('.viewer canvas');"
        "const d = c.getContext('2d').getImageData(20, c.height >> 1, c.width - 40, 1).data;"
        "let runs = 0, changes = 0; for (let i = 4; i < d.length; i += 4) { if (d[i] === d[i - 4]) ++runs; else ++changes; }"
        "return runs / (runs + changes)")
    assert same > 0.8  # eight screen pixels a pixel


def test_numbers_are_said_with_the_pictures(browser, page) -> None:
    open_page(browser, page)
    choose(browser, "right", "1")
    text = browser.execute_script("return document.querySelector('.viewer [data-name=right]').textContent")
    assert "dB" in text and "SSIM" in text and "FSIM" in text
    assert browser.execute_script("return document.querySelectorAll('table.metrics tbody tr').length") >= 2


def test_comparison_in_numbers(browser, tmp_path) -> None:
    """The table has what the program prints; names are text, whatever they hold."""
    files = [write_pnm(tmp_path / name, picture(64, 48, 3, seed)) for seed, name in ((1, "a.ppm"), (2, '<b>"&.ppm'), (1, "same.ppm"))]
    done = subprocess.run([PROGRAM, "compare", *files, "--html", tmp_path / "page.html"], check=True, capture_output=True,
                          text=True, timeout=60)
    psnr, ssim, fsim, fsimc, mse, largest = done.stdout.splitlines()[1].split()[:6]
    open_page(browser, tmp_path / "page.html")
    rows = browser.execute_script(
        "return [...document.querySelectorAll('table.metrics tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    assert rows[0] == ["picture", "PSNR dB", "SSIM", "FSIM", "FSIMc", "MSE", "largest error"]
    assert rows[1][:5] == ['<b>"&.ppm', f"{float(psnr):.2f}", f"{float(ssim):.4f}", f"{float(fsim):.4f}", f"{float(fsimc):.4f}"]
    assert float(rows[1][5]) == pytest.approx(float(mse), rel=1e-4) and float(rows[1][6]) == float(largest)
    assert rows[2] == ["same.ppm", "∞", "1.0000", "1.0000", "1.0000", "0", "0"]
    assert browser.find_elements("css selector", "b") == []
    options = browser.find_elements("css selector", "[data-choose=left] option")
    assert [option.text for option in options] == ["a.ppm", '<b>"&.ppm', "same.ppm"]


def test_every_table_of_the_papers_is_on_the_page(study_markup) -> None:
    tables = re.findall(r'data-table="(\[00\d\]) ([\d.]+)"', study_markup)
    expected = ([("[000]", f"6.{i}") for i in range(3, 19)] + [("[001]", f"6.{i}") for i in range(4, 10)]
                + [("[002]", f"5.{i}") for i in range(1, 5)] + [("[003]", "1")]
                + [("[004]", f"{i}") for i in range(1, 8)])
    assert tables == expected
    # Theirs and ours: [001]'s naive kernel at 1080p and radius 1, 14.7 ms and 0.0274 ms.
    table = study_markup.split('data-table="[001] 6.8"')[1].split("</section>")[0]
    row = re.search(r"<tr><th>1 naive</th><td>([^<]*)</td><td class=\"ours\">([^ <]*)", table)
    assert row and (row[1], row[2]) == ("14.7", "0.0274")


def test_programs_that_are_not_ours_stand_beside_threads_or_nothing(study_markup) -> None:
    table = study_markup.split('data-table="[002] 5.1"')[1].split("</section>")[0]
    assert "hardly a time of computing" in table
    row = re.search(r"<tr><th>lena, 512 x 512</th>(.*?)</tr>", table)
    assert row
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row[1])]
    # CUDA and our rung of it, OpenMP and our threads, MATLAB and nothing, the product.
    assert cells == ["740", "10 74×", "3950", "80 49.4×", "7720", "–", "0.8"]


def test_impossible_figures_are_said_to_be(study_markup) -> None:
    assert "36 T a second" in study_markup
    assert "looks like a slip" in study_markup


def test_findings_come_from_the_measurements(study_markup) -> None:
    costs = study_markup.split("<h3>Costs</h3>")[1].split("</ul>")[0]
    assert "constant memory, where lanes read different entries" in costs
    pays = study_markup.split("<h3>Pays</h3>")[1].split("</ul>")[0]
    # By hand from the fixture at r 1, 5 and 15: the cube root of 0.0315/0.0293 * 0.1792/0.1412 * 1.2416/0.9516.
    assert "<b>1.21×</b>one approximate exponential for both Gaussians" in pays
    # Processor and GPU at the same work: the product's usual bm3d is not what its threads computed here.
    machines = study_markup.split("<h3>One thread, all cores, the GPU</h3>")[1].split("</ul>")[0]
    assert "bm3d: “ungrain, paper-002” over “threads”, 20×" in machines
    assert "bm3d: “ungrain” over “threads”" not in machines


def test_ladders_that_it_does_not_know(study_markup) -> None:
    part = study_markup.split('id="ladder-a-ladder-of-the-future"')[1]
    assert "&lt;made&gt; &amp; up" in part
    for words in ("matching", "64x32", "31.25 dB"):
        assert words in part
    assert "another version" in study_markup.split('id="findings"')[1].split("<h2")[0]


def test_every_part_of_the_study_is_there(study_markup) -> None:
    """A heading or a summary of each part that the measurements of the tests have something for."""
    for words in ('id="pictures"', "Settings", 'id="paper-004"', "CAT in s", "speed-up factor", "Like figure 6.1", "Like figure 6.2",
                  "Like figures 3 to 8", "ms by threads a block and blocks", "The paper's figures, picture by picture",
                  "Best shapes and occupancy", "Where the time goes", "Parts of “", "Every picture and radius", 'id="about"'):
        assert words in study_markup, words


def test_a_study_without_a_gpu(browser, study_page) -> None:
    """What was left out is said, and papers' figures stand alone."""
    page = study_page.with_name("processor.html")
    subprocess.run([STUDY, "report", study_page.with_name("results"), "--html", page], check=True, timeout=60)
    open_page(browser, page)
    assert "Left out: adaptive-bilateral: " in browser.find_element("css selector", "#no-gpu").text
    assert "the paper's figures alone" in markup(browser)
    assert browser.get_log("browser") == []


def test_short_numbers(browser, compare_page) -> None:
    open_page(browser, compare_page)
    given = [0, 0.0274, 1.5, 99.96, 1576.79, -3.14159, 1e-9]
    shown = browser.execute_script("return [...arguments[0], NaN, Infinity].map(short_number)", given)
    assert shown == ["0", "0.0274", "1.5", "100", "1577", "-3.14", "0", "–", "–"]


def test_plots_of_anything(browser, compare_page) -> None:
    """One point, the same value twice, a huge span, zero on a logarithmic axis, infinity: dots, and no NaN among them."""
    open_page(browser, compare_page)
    plots = browser.execute_script(
        "const sets = [[[5, 5]], [[1, 1e-6], [1, 1e9]], [[0, 0], [2, 3]], [[1, Infinity], [2, 1]], [[3, 7], [4, 7]]];"
        "return sets.flatMap((points) => [[false, false], [false, true], [true, false], [true, true]].map(([log_x, log_y]) =>"
        "  line_plot({title: '<t>', x_label: 'x', y_label: 'y', log_x, log_y,"
        "    series: [{name: 'a', points, colour: 9}, {name: 'b', points: [], colour: 0, dashed: true}]}).text))")
    assert len(plots) == 20
    for plot in plots:
        assert 'class="dot s1"' in plot and not re.search("NaN|Infinity|undefined|<t>|</svg>b<", plot), plot
    empty = browser.execute_script("return [line_plot({title: 't', series: [{points: []}]}), bar_plot({title: 't', bars: []})]")
    assert empty == ["", ""]


def test_plots_are_there_and_drawn(browser, study_page) -> None:
    open_page(browser, study_page)
    plots = browser.execute_script(
        "return [...document.querySelectorAll('.plot > svg')].map((svg) => ({"
        "  wide: svg.getBoundingClientRect().width,"
        "  shapes: svg.querySelectorAll('path.line, rect.bar').length,"
        "  bad: /NaN|Infinity|undefined/i.test(svg.innerHTML)}))")
    assert len(plots) > 25
    assert all(plot["wide"] > 200 and plot["shapes"] > 0 and not plot["bad"] for plot in plots)


def test_readable_on_a_phone(browser, page) -> None:
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": PHONE, "height": 740, "deviceScaleFactor": 2, "mobile": True})
        open_page(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE
        sizes = browser.execute_script(
            "return [...document.querySelectorAll('.plot svg text')].filter((t) => t.checkVisibility()).map((t) =>"
            "  parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width /"
            "  t.ownerSVGElement.viewBox.baseVal.width)")
        assert all(size >= 9 for size in sizes), min(sizes)
        move_slider(browser, 0.5)
        assert abs(line_at(browser) - 0.5) < 0.02
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def brightness(browser, expression: str) -> float:
    colour = browser.execute_script(f"return {expression}")
    return sum(float(part) for part in colour[colour.index("(") + 1:-1].split(",")[:3]) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser, any_page, scheme) -> None:
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        open_page(browser, any_page)
        paper = brightness(browser, "getComputedStyle(document.body).backgroundColor")
        ink = brightness(browser, "getComputedStyle(document.body).color")
        assert abs(paper - ink) > 150 and (paper > ink) == (scheme == "light")
        lines = browser.execute_script(
            "return [...document.querySelectorAll('.plot path.line')].slice(0, 40).map((l) => getComputedStyle(l).stroke)")
        for colour in lines:
            parts = [float(part) for part in colour[colour.index("(") + 1:-1].split(",")[:3]]
            assert max(abs(part - paper) for part in parts) > 80, colour
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_without_scripts_the_pictures_are_shown(browser, any_page) -> None:
    try:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        browser.get(any_page.as_uri())
        shown = browser.find_elements("css selector", ".pictures img")
        assert shown and all(image.is_displayed() for image in shown)
        text = browser.find_element("css selector", "body").text
        assert "drawn by the script" in text and "dB, SSIM" in text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


# ---- volumes


def open_volumes(browser, page: Path) -> None:
    open_page(browser, page)
    browser.execute_script("const c = document.querySelector('[data-choose=cross]'); c.checked = false; c.dispatchEvent(new Event('change'))")


def voxel_of(seed: int, x: int, y: int, z: int) -> int:
    return int(volume(*VOLUME, seed)[(z * VOLUME[1] + y) * VOLUME[0] + x])


def plane_pixel(browser, plane: str, across: int, up: int, columns: int, rows: int) -> list[int]:
    """The colour in the middle of a voxel of a plane, counted from its lower left corner."""
    return browser.execute_script(
        "const [plane, i, j, columns, rows] = arguments;"
        "const c = document.querySelector(`[data-plane=${plane}] canvas`);"
        "return [...c.getContext('2d').getImageData((i + 0.5) / columns * c.width, (rows - j - 0.5) / rows * c.height, 1, 1).data]",
        plane, across, up, columns, rows)


def set_slice(browser, plane: str, slice_number: int) -> None:
    browser.execute_script(
        "const s = document.querySelector(`[data-plane=${arguments[0]}] input`); s.value = arguments[1]; s.dispatchEvent(new Event('input'))",
        plane, slice_number)


def slices(browser) -> list[int]:
    """The point in which the planes meet: x, y, z."""
    return [int(browser.execute_script(f"return document.querySelector('[data-plane={plane}] input').value"))
            for plane in ("sagittal", "coronal", "axial")]


def test_planes_show_the_voxels(browser, volume_page) -> None:
    open_volumes(browser, volume_page)
    choose(browser, "right", "1")
    move_slider(browser, 0)
    width, height, depth = VOLUME
    for x, y, z in ((3, 4, 5), (10, 15, 0), (19, 0, 11), (7, 8, 9)):
        for plane, at in (("sagittal", x), ("coronal", y), ("axial", z)):
            set_slice(browser, plane, at)
        expected = voxel_of(2, x, y, z)
        for plane, across, up, columns, rows in (("axial", x, y, width, height), ("coronal", x, z, width, depth),
                                                 ("sagittal", y, z, height, depth)):
            assert plane_pixel(browser, plane, across, up, columns, rows) == [expected] * 3 + [255], (plane, x, y, z)
    labels = browser.execute_script("return [...document.querySelectorAll('[data-slice]')].map((e) => e.textContent)")
    assert labels == ["slice 10 of 12", "slice 9 of 16", "slice 8 of 20"]


def test_stacks_go_downwards(browser, tmp_path) -> None:
    """Slices that are no NIfTI file's are shown as pictures are: y downwards, and z likewise."""
    samples = bytes(map(int, volume(*VOLUME, 1)))
    (tmp_path / "stack.npy").write_bytes(npy_bytes(str(VOLUME[::-1]), "|u1", samples))
    subprocess.run([PROGRAM, "compare", "--volume", "stack.npy", "stack.npy", "--html", "page.html"], cwd=tmp_path, check=True,
                   capture_output=True, timeout=60)
    open_volumes(browser, tmp_path / "page.html")
    move_slider(browser, 0)
    width, height, depth = VOLUME
    x, y, z = 3, 4, 5
    for plane, at in (("sagittal", x), ("coronal", y), ("axial", z)):
        set_slice(browser, plane, at)
    for plane, across, down, columns, rows in (("axial", x, y, width, height), ("coronal", x, z, width, depth),
                                               ("sagittal", y, z, height, depth)):
        assert plane_pixel(browser, plane, across, rows - 1 - down, columns, rows)[0] == voxel_of(1, x, y, z), plane


def test_voxels_have_their_aspect(browser, volume_page) -> None:
    open_volumes(browser, volume_page)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.plane canvas')].map((c) => [c.getBoundingClientRect().width, c.getBoundingClientRect().height])")
    lengths = [count * spacing for count, spacing in zip(VOLUME, SPACING)]
    scale = boxes[0][0] / lengths[0]
    for (width, height), (across, down) in zip(boxes, ((0, 1), (0, 2), (1, 2))):
        assert width == pytest.approx(lengths[across] * scale, abs=1) and height == pytest.approx(lengths[down] * scale, abs=1)
    assert scale > 5


def test_difference_and_contrast_of_volumes(browser, volume_page) -> None:
    open_volumes(browser, volume_page)
    set_slice(browser, "axial", 4)
    choose(browser, "left", "1")
    choose(browser, "right", "1")
    choose(browser, "mode", "difference")
    assert plane_pixel(browser, "axial", 6, 7, 20, 16) == [128, 128, 128, 255]
    choose(browser, "left", "0")
    choose(browser, "gain", "2")
    expected = min(255, max(0, 128 + 2 * (voxel_of(1, 6, 7, 4) - voxel_of(2, 6, 7, 4))))
    assert plane_pixel(browser, "axial", 6, 7, 20, 16)[0] == expected
    choose(browser, "mode", "slider")
    move_slider(browser, 1)
    for what, value in (("level", "100"), ("window", "50")):
        browser.execute_script("const s = document.querySelector(`[data-choose=${arguments[0]}]`); s.value = arguments[1];"
                               "s.dispatchEvent(new Event('input'))", what, value)
    expected = min(255, max(0, (voxel_of(1, 6, 7, 4) - 75) * 255 / 50))
    assert abs(plane_pixel(browser, "axial", 6, 7, 20, 16)[0] - expected) <= 1
    said = browser.execute_script("return [...document.querySelectorAll('.controls output')].map((e) => e.textContent)")
    assert said == ["100", "50"]
    browser.find_element("css selector", "[data-choose=reset]").click()
    assert plane_pixel(browser, "axial", 6, 7, 20, 16)[0] == voxel_of(1, 6, 7, 4)


def test_keys_and_clicks_in_planes(browser, volume_page) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_volumes(browser, volume_page)
    assert slices(browser) == [10, 8, 6]
    canvas = browser.find_element("css selector", "[data-plane=axial] canvas")
    canvas.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.PAGE_UP)
    assert slices(browser) == [8, 9, 7]
    canvas.send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert slices(browser) == [9, 8, 0]
    for _ in range(3):
        canvas.send_keys(Keys.PAGE_DOWN)  # stays at the first slice
    assert slices(browser)[2] == 0
    chosen = "return [...document.querySelectorAll('.viewer select')].map((s) => s.value).slice(0, 3)"
    assert browser.execute_script(chosen) == ["1", "2", "slider"]
    canvas.send_keys("x")
    assert browser.execute_script(chosen) == ["2", "1", "slider"]
    canvas.send_keys("d", "1")
    assert browser.execute_script(chosen) == ["2", "0", "difference"]
    coronal = browser.find_element("css selector", "[data-plane=coronal] canvas")
    ActionChains(browser).move_to_element(coronal).click().perform()
    assert slices(browser)[0] in (9, 10) and slices(browser)[2] in (5, 6) and slices(browser)[1] == 8
    assert browser.get_log("browser") == []


def test_numbers_and_names_of_volumes(browser, volume_page) -> None:
    open_page(browser, volume_page)
    rows = browser.execute_script(
        "return [...document.querySelectorAll('table.metrics tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    assert rows[0] == ["picture", "PSNR dB", "SSIM", "MSE", "largest error"]
    assert [row[0] for row in rows[1:]] == ["noisy.nii.gz", "noisy.nii.gz, in the mask", '<b>"&result.nii.gz', '<b>"&result.nii.gz, in the mask']
    assert browser.find_elements("css selector", "b") == []
    text = browser.execute_script("return document.querySelector('.viewer [data-name=right]').textContent")
    assert text.startswith('<b>"&result.nii.gz: ') and "dB, SSIM" in text
    assert "peak 255" in markup(browser)


def test_volumes_on_a_phone(browser, volume_page) -> None:
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": PHONE, "height": 740, "deviceScaleFactor": 2, "mobile": True})
        open_page(browser, volume_page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
