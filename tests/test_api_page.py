"""The page about the REST API: its commands are run as a reader runs them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from config import problems
from tests.live_server import ROOT, LiveServer, fresh_database

PAGE = ROOT / "docs" / "API.md"


def commands(server: LiveServer) -> str:
    """All of the page's commands, as one script for this server."""
    script = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL))
    assert script.count("http://127.0.0.1:8000") == 1
    script = script.replace("http://127.0.0.1:8000", server.url)
    return re.sub(r"export TOKEN=.*", f"export TOKEN={server.token}", script)


class TestThePage:
    @pytest.mark.skipif(not shutil.which("curl"), reason="its commands are curl's")
    def test_shows_commands_that_all_succeed(self, tmp_path: Path) -> None:
        with fresh_database(tmp_path) as url, LiveServer(database_url=url, WORKERS=1) as server:
            ran = subprocess.run(
                ["bash", "-eu", "-c", commands(server)], capture_output=True, text=True, check=False
            )
        assert ran.returncode == 0, ran.stderr
        answers = [line for line in ran.stdout.splitlines() if line]
        assert len(answers) >= 18
        assert not [answer for answer in answers if not answer.startswith("{")]
        assert not [answer for answer in answers if "urn:dossier:problem" in answer]
        assert [answer for answer in answers if '"window"' in answer]

    def test_explains_every_code_that_the_server_knows(self) -> None:
        told = set(re.findall(r"`(\w+)`", PAGE.read_text().partition("## Errors")[2]))
        codes = {kind.code for kind in problems.ANSWERS} | {
            code for code, _ in problems._OF_DRF.values()
        }
        assert codes - told == {"not_acceptable"}, "it is never answered"
