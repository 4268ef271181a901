"""The program on files of every format and oddity, judged by other libraries than its own.

`right`: the output holds the same picture; `error`: the one line that was wanted; anything else is `wrong`, or `poor`
where the result is right but noisier than that of the same picture as 8-bit PNM. `--table` prints every row.
"""
import pytest

import judge
from all_rows import ROWS
from judge import Verdict


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_file(row, tmp_path, verdicts):
    missing = row.missing()
    if missing:
        verdicts[row.name] = Verdict("skipped", f"{', '.join(missing)} is missing")
        pytest.skip(f"{', '.join(missing)} is missing")
    verdicts[row.name] = Verdict("wrong", "the test itself failed")
    verdict = verdicts[row.name] = judge.judge(row, tmp_path / "row")
    if verdict.word not in ("right", "error"):
        pytest.fail(f"{verdict.word}: {verdict.why}", pytrace=False)
