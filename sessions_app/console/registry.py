"""Our own pages of the site, as modules named `pages` have registered them."""

from typing import Protocol, TypeVar

from django.contrib.admin import AdminSite
from django.urls import URLPattern


class Registrable(Protocol):
    @classmethod
    def pattern(cls, site: AdminSite) -> URLPattern: ...


PageT = TypeVar("PageT", bound=type[Registrable])
_pages: list[type[Registrable]] = []


def register(page: PageT) -> PageT:
    """Give the page its address in the admin site (a decorator)."""
    _pages.append(page)
    return page


def registered_pages() -> list[type[Registrable]]:
    return list(_pages)
