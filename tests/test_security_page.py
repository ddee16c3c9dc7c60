"""docs/SECURITY.md names a test for each threat: each of them is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "SECURITY.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.count("|") == 4 and not line.startswith("|---")]
THREATS = ROWS[1:]
STRIDE = (
    "Spoofing",
    "Tampering",
    "Repudiation",
    "Information disclosure",
    "Denial of service",
    "Elevation of privilege",
)


def test_it_has_a_row_for_each_kind_of_threat():
    kinds = [match[1] for row in THREATS if (match := re.match(r"\| \*\*(.+?)\*\*", row))]
    assert tuple(kinds) == STRIDE


@pytest.mark.parametrize("row", THREATS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_row_names_tests_that_are_there(row: str):
    named = re.findall(r"`([^`]+)`", row.split("|")[3])
    assert named
    source = ""
    for name in named:
        file, _, test = (
            name.partition("::") if name.endswith(".py") or "::" in name else ("", "", name)
        )
        if file:
            source = (ROOT / "tests" / file).read_text()
        if test:
            assert re.search(rf"(def|class) {test}\b", source), name
