"""The service layer of runs: every write is one call of `RunManager`."""

from .creation import NewRun
from .manager import RunManager

__all__ = ["NewRun", "RunManager"]
