"""site/comments.py HEADER: the header with its comments as Doxygen wants them: /// before what they speak of, ///< behind it.

Doxygen's INPUT_FILTER. The headers have plain comments, which Doxygen does not read.
"""

import re
import sys

BEHIND = re.compile(r"(?P<code>.*?[;,{})\w])\s*//(?P<text> .*)")


def marked(lines):
    at_top = True  # the comment before #pragma once speaks of the file
    behind = False  # the line before had a comment behind it
    for line in lines:
        stripped = line.lstrip()
        if stripped.startswith("//"):
            indent = line[:len(line) - len(stripped)]
            text = stripped[2:]
            if text.startswith("   "):
                text = "    " + text  # code, to Doxygen's Markdown
            if at_top:
                yield f"/// \\file\n///{text}" if at_top == 1 else f"///{text}"
                at_top = 2
            elif behind and len(indent) > 20:  # a comment that goes on under the one behind the line above
                yield f"{indent}///<{text}"
            else:
                yield f"{indent}///{text}"
            continue
        if at_top and not stripped:
            yield line
            continue
        at_top = False
        match = BEHIND.fullmatch(line)
        behind = bool(match) and '"//' not in line and "http" not in line
        yield f"{match['code']} ///<{match['text']}" if behind else line


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(marked(header.read().split("\n"))))
