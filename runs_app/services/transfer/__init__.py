"""A session as a file, and back: written by `lines` from `contents`, read by `staging` into rows
that wait on disk (`scratch`) until `restoring` stores them in one transaction. docs/IMPORT.md
describes the format."""

from .contents import Contents
from .lines import ndjson
from .staging import Staged, stage

__all__ = ["Contents", "Staged", "ndjson", "stage"]
