from . import runs, sessions

__all__ = ["runs", "sessions"]
