"""Where one arrives."""

from typing import Any

from django.utils.translation import gettext as _

from ..console.registry import register
from .base import ANY_STAFF, ConsolePage


@register
class HomePage(ConsolePage):
    route, name = "", "index"
    permission = ANY_STAFF
    template_name = "console/home.html"

    def content(self) -> dict[str, Any]:
        return {"title": _("Home")}
