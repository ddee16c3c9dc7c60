"""Our own pages of the admin site: what lists and forms cannot show."""

from . import bulk

__all__ = ["bulk"]
