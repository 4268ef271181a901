"""The program on files of every format and oddity, judged by other libraries than its own.

`right`: the output holds the same picture; `error`: the one line that was wanted; anything else is `wrong`, or `poor`
where the result is right but noisier than that of the same picture as 8-bit PNM. `--table` prints every row.
"""

import pytest

from all_rows import ROWS
from verdict import Verdict


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_file(row, verdicts, note):
    missing = ", ".join(row.missing())
    if missing:
        note(row, Verdict("skipped", f"{missing} is missing"))
        pytest.skip(f"{missing} is missing")
    note(row, Verdict("wrong", "the test itself failed"))
    verdict = verdicts[row.name].result()
    note(row, verdict)
    if verdict.word not in ("right", "error"):
        pytest.fail(f"{verdict.word}: {verdict.why}", pytrace=False)
