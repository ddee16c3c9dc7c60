"""Believable data for looking at: what `manage.py seed_demo` writes."""

from .seeding import seed

__all__ = ["seed"]
