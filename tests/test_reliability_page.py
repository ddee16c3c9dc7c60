"""docs/RELIABILITY.md: each reported fault has its tests, and they are there."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "RELIABILITY.md").read_text()
ROWS = dict(re.findall(r"^\| ([A-Z]+-\d\d) .+?\| (.+?) \| .+ \|$", PAGE, re.MULTILINE))
KINDS = {
    "PAIR": 5, "RUN": 7, "CON": 6, "LOCK": 1, "STALE": 1, "ORD": 1, "DUP": 1, "TTL": 2, "DEL": 2,
    "SEC": 4, "DATA": 6, "BIG": 2, "UI": 1, "PAG": 1, "SRCH": 1, "TIME": 1, "ADM": 2, "IMP": 1,
    "FORK": 1, "CMP": 1,
}  # fmt: skip


def test_the_table_has_every_report() -> None:
    found = [report.rpartition("-")[0] for report in ROWS]
    assert {kind: found.count(kind) for kind in found} == KINDS


@pytest.mark.parametrize("report", sorted(ROWS))
def test_a_report_has_tests_that_exist(report: str) -> None:
    places = re.findall(r"`([^`]+)::(\w+)`", ROWS[report])
    assert places
    for path, name in places:
        assert name in _names(path), f"{path} has no {name}"


def _names(path: str) -> set[str]:
    tree = ast.parse((TESTS / path).read_text())
    kinds = (ast.ClassDef, ast.FunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
