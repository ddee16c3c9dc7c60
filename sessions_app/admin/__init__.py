"""The admin: an operator's view of what agents have stored, and the few things to do about it."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from . import records, tokens, tool_calls

__all__ = ["records", "tokens", "tool_calls"]

admin.site.site_title = "Dossier"
admin.site.site_header = "Dossier"
admin.site.index_title = _("Overview")
# The root of the site is the API's: there is nothing to view.
admin.site.site_url = None
