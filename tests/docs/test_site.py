"""The site as it was built (tools/site): every page is there, every link leads somewhere, and nothing is fetched from elsewhere."""

from __future__ import annotations

import re
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

import pytest
from blocks import ROOT

SITE = ROOT / "build/site"
pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site was not built (make site)")

# Attributes that make a browser fetch something, and those that only lead there when they are followed.
FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data"),
           ("img", "srcset"), ("use", "href")}
FOLLOWED = {("a", "href")}


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched, self.followed, self.names = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.names.add(value)
            elif (tag, name) in FETCHED and value:
                self.fetched.append(value)
            elif (tag, name) in FOLLOWED and value:
                self.followed.append(value)


@pytest.fixture(scope="module")
def pages():
    # The study's page is one file of its own, which tests/cli/test_study.py looks at.
    return {path: Page(path) for path in sorted(SITE.rglob("*.html")) if path.name not in ("404.html", "study-page.html")}


def test_every_document_is_a_page(pages):
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT / "docs").with_suffix(".html")
        if name.name == "README.html":
            name = name.with_name("index.html")
        assert SITE / name in pages, f"no page of docs/{document.relative_to(ROOT / 'docs')}"


def test_the_reference_has_what_is_public(pages):
    python = (SITE / "api/python.html").read_text(encoding="utf-8")
    for name in ["denoise", "bm3d", "nlm", "bm4d", "denoise_video", "estimate_sigma"]:
        assert re.search(rf'id="ungrain\.(_methods\.)?{name}"', python), f"ungrain.{name} is not in the reference"
    if "Doxygen was not there" in (SITE / "api/cpp/index.html").read_text(encoding="utf-8"):
        pytest.skip("doxygen is missing")
    for header in (ROOT / "include/ungrain").rglob("*.h"):
        assert (SITE / "api/cpp" / header.relative_to(ROOT / "include/ungrain").with_suffix(".html")).exists(), f"no page of {header.name}"
    denoiser = (SITE / "api/cpp/denoiser.html").read_text(encoding="utf-8")
    assert "create() checks, chooses, plans and allocates everything" in denoiser  # the header's comment


def test_nothing_is_fetched_from_elsewhere(pages):
    for path, page in pages.items():
        for address in page.fetched:
            assert not re.match(r"([a-z]+:)?//", address), f"{path.relative_to(SITE)} fetches {address}"
        text = path.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in text and 'class="mermaid"' not in text, path
    for path in [*SITE.rglob("*.css")]:
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"](?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_every_link_leads_somewhere(pages):
    for path, page in pages.items():
        for address in page.followed + page.fetched:
            if re.match(r"[a-z]+:|//", address):
                continue
            target, _, anchor = urllib.parse.unquote(address).partition("#")
            file = (path.parent / target).resolve() if target else path
            if file.is_dir():
                file = file / "index.html"
            assert file.exists(), f"{path.relative_to(SITE)} links {address}"
            if anchor and file in pages:
                assert anchor in pages[file].names or anchor.startswith("__"), f"{path.relative_to(SITE)} links {address}"
