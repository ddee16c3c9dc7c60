"""What every own page of the console has in common: an address, a right, a policy, a frame."""

from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.views import View

from ..actors import Actor
from ..console import policy

Promise = Any  # a lazy translation

ANY_STAFF = ""
"""The ``permission`` of a page that whoever may enter the console may see."""


class Crumb(NamedTuple):
    label: Promise
    url: str | None = None


class Tab(NamedTuple):
    """``number`` None: there is nothing to count."""

    label: Promise
    url: str
    is_current: bool
    number: int | None = None


class ConsolePage(View):
    """A page in the admin's frame, for staff who have its ``permission``.

    A subclass says where it is, who may see it, how it looks and what it shows::

        @register
        class SessionPage(ConsolePage):
            route, name = "sessions/<str:session_id>/", "session"
            permission = "sessions_app.view_session"
            template_name = "console/session.html"

            def content(self) -> dict[str, Any]:
                return {"title": …, "agent_session": …}

    Its address is ``reverse("admin:session", args=[…])``. Path parameters are in ``self.kwargs``.
    """

    route: ClassVar[str]
    name: ClassVar[str]
    permission: ClassVar[str]
    """`ANY_STAFF`, or app.codename; more than one right is asked for in ``may``."""
    template_name: ClassVar[str]
    fragment_name: ClassVar[str] = ""
    """What htmx gets instead of the whole page."""

    site: ClassVar[AdminSite]

    @classmethod
    def pattern(cls, site: AdminSite) -> URLPattern:
        cls.site = site
        return path(cls.route, site.admin_view(cls.as_view()), name=cls.name)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not self.may():
            raise PermissionDenied
        return policy.apply(policy.OWN_PAGE, super().dispatch(request, *args, **kwargs))

    def may(self) -> bool:
        """Whether this account may see the page; asked before anything is read."""
        return not self.permission or self.request.user.has_perm(self.permission)

    @cached_property
    def now(self) -> datetime:
        """One moment for all that the page shows."""
        return timezone.now()

    @cached_property
    def actor(self) -> Actor:
        user = self.request.user
        if not isinstance(user, User):
            raise PermissionDenied
        return Actor.operator(user)

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks for a part of the page."""
        return bool(self.fragment_name and getattr(self.request, "htmx", False))

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        return self.render()

    def content(self) -> dict[str, Any]:
        """What the template shows; ``title`` is the page's name."""
        return {}

    def crumbs(self) -> list[Crumb]:
        """From Home to the page before this one."""
        return []

    def tabs(self) -> list[Tab]:
        return []

    def render(self, *, status: int = 200) -> HttpResponse:
        if self.is_fragment:
            return TemplateResponse(self.request, self.fragment_name, self.content(), status=status)
        context = {
            **self.site.each_context(self.request),
            "crumbs": self.crumbs(),
            "tabs": self.tabs(),
            **self.content(),
        }
        return TemplateResponse(self.request, self.template_name, context, status=status)
