"""Transcripts that people have of their agents, as messages: a reader for each format, and what
stores them. `manage.py import_sessions` is the door; docs/IMPORT.md says what becomes of what."""

from collections.abc import Mapping

from . import claude_code, codex, openai_chat
from .entries import BadFileError, Reader
from .loading import Loaded, Loader

# By the name of the format: its reader, and the names that its files have.
FORMATS: Mapping[str, tuple[Reader, tuple[str, ...]]] = {
    "openai": (openai_chat.read, ("*.json", "*.jsonl")),
    "claude-code": (claude_code.read, ("*.jsonl",)),
    "codex": (codex.read, ("*.jsonl",)),
}

__all__ = ["FORMATS", "BadFileError", "Loaded", "Loader"]
