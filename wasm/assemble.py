"""assemble.py MODULE_FOLDER OUTPUT: the page as one file: styles, scripts, the worker's source and the packed module in its template.

The policy in the page names its script and its style by their hashes and allows no other, and no request at all.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "page"


def hash_of(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def joined(*paths: Path) -> str:
    text = "\n".join(path.read_text() for path in paths)
    if "</script" in text.lower() or "<!--" in text:
        sys.exit("assemble.py: a script holds the end of a script or the start of a comment")
    return text


def page(module: Path) -> str:
    style = (PAGE / "page.css").read_text()
    script = joined(PAGE / "team.js", PAGE / "page.js")
    policy = "; ".join([
        "default-src 'none'", "img-src data:", f"style-src {hash_of(style)}", "worker-src blob:",
        f"script-src {hash_of(script)} 'wasm-unsafe-eval'", "base-uri 'none'", "form-action 'none'"])
    packed = gzip.compress((module / "ungrain.wasm").read_bytes(), 9, mtime=0)
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "worker": joined(module / "ungrain.js", PAGE / "library.js", PAGE / "worker.js"),
        "module": base64.b64encode(packed).decode(),
    }
    text = (PAGE / "page.html").read_text()
    for name, part in parts.items():
        before, after = text.split("{{" + name + "}}")
        text = before + part + after
    return text


if __name__ == "__main__":
    module_folder, output = map(Path, sys.argv[1:])
    output.write_text(page(module_folder))
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")
