"""The admin site: Django's, in its skin, with our own pages inside it."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, URLResolver
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from . import policy
from .login import LoginForm
from .navigation import navigation
from .registry import registered_pages
from .skin import SkinnedSite

Patterns = list[URLPattern | URLResolver]


class ConsoleSite(SkinnedSite):
    site_title = "Dossier"
    site_header = "Dossier"
    index_title = _("Home")
    # The root of the site is the API's: there is nothing to view.
    site_url = None
    login_form = LoginForm

    def get_urls(self) -> Patterns:
        """Our own pages come first: what the admin would answer by a form may have a page."""
        autodiscover_modules("pages")
        # The skin's search looks through names of models; ours are all in the sidebar.
        skins = [pattern for pattern in super().get_urls() if _name(pattern) != "search"]
        return [*(page.pattern(self) for page in registered_pages()), *skins]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        may_enter = self.has_permission(request)
        return context | {"navigation": navigation(request) if may_enter else []}

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        response = policy.apply(policy.OWN_PAGE, super().login(request, extra_context))
        form = (getattr(response, "context_data", None) or {}).get("form")
        if wait := getattr(form, "retry_after", 0):
            response.status_code, response.headers["Retry-After"] = 429, str(wait)
        return response


def _name(pattern: URLPattern | URLResolver) -> str | None:
    return getattr(pattern, "name", None)
