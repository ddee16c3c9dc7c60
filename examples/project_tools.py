"""The tools of the repair agent: they read, edit and run files of the current folder only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Result:
    text: str
    is_error: bool = False


def list_files() -> Result:
    files = (path for path in Path().rglob("*") if path.is_file())
    return Result("\n".join(sorted(path.as_posix() for path in files)))


def read_file(path: str) -> Result:
    return Result(_inside(path).read_text())


def append_line(path: str, line: str) -> Result:
    file = _inside(path)
    text = file.read_text()
    if text and not text.endswith("\n"):
        text += "\n"
    file.write_text(f"{text}{line}\n")
    return Result(f"{path} now ends with {line}")


def run_python(script: str) -> Result:
    return start(str(_inside(script).relative_to(Path.cwd())), Path.cwd())


def start(script: str, folder: Path) -> Result:
    # Without this interpreter's installed packages (-S, -E): a package that happens to be installed
    # here must not hide that the project does not name it. -B leaves no cache files behind.
    command = [sys.executable, "-E", "-S", "-B", script]
    done = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=60
    )
    return Result(f"exit code {done.returncode}\n{done.stdout}{done.stderr}", done.returncode != 0)


TOOLS: dict[str, Callable[..., Result]] = {
    "list_files": list_files,
    "read_file": read_file,
    "append_line": append_line,
    "run_python": run_python,
}


def use(name: str, arguments: dict[str, Any]) -> Result:
    """A tool that fails is an answer too: the model reads why."""
    try:
        return TOOLS[name](**arguments)
    except (KeyError, TypeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
        return Result(f"{type(error).__name__}: {error}", is_error=True)


def _inside(path: str) -> Path:
    file = Path(path).resolve()
    if not file.is_relative_to(Path.cwd()):
        raise ValueError(f"{path} is outside the project")
    return file
