"""The program of docs/OPENAI.md, as it stands there."""

import os
import re
import subprocess
import sys

from tests.live_server import ROOT, LiveServer

DOCUMENT = (ROOT / "docs" / "OPENAI.md").read_text()


def block(language: str) -> str:
    """The first of this language."""
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found
    return found[1]


def test_the_program_is_short_and_prints_what_the_page_says(live: LiveServer) -> None:
    program = block("python")
    assert len(program.splitlines()) < 20
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DOSSIER_URL": live.url, "DOSSIER_TOKEN": live.token},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.stdout, ran.returncode) == (block("text"), 0), ran.stderr
