"""Our own pages about runs."""

from . import run

__all__ = ["run"]
