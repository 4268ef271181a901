"""Links between the repository's Markdown files: the file is there, and so is the heading."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")


def _prose(page):
    """Without code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def _anchors(page):
    """As GitHub names them."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class TestLinks:
    def test_every_link_leads_somewhere(self, subtests):
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True)
        if names.returncode:
            pytest.skip("not a git repository")
        for name in names.stdout.split():
            for link in LINK.findall(_prose(ROOT / name)):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                with subtests.test(page=name, link=link):
                    target = (ROOT / name).parent / path if path else ROOT / name
                    assert target.exists(), "there is no such file"
                    if anchor and target.suffix == ".md":
                        assert anchor in _anchors(target)
