"""Our own pages of the admin site: what lists and forms cannot show."""

from . import home, run

__all__ = ["home", "run"]
