"""The README's code that writes runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
PRINTED = [
    "<LanceFileReader example.lance: 3 rows of id, tags; format 2.2>",
    '{"a":[2.5],"b":1}',
    "[1, 0]",
    "3 7",
    "4500",
]
BLOCKS = [
    block
    for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    if "write_" in block
]


@pytest.mark.parametrize(("block", "printed"), list(zip(BLOCKS, PRINTED, strict=True)))
def test_the_code_runs(
    block: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(README), "exec"), {})  # noqa: S102 - our own documentation
    assert printed in capsys.readouterr().out
    assert printed in block
