"""Who read what sessions contain, and when."""

from typing import Any

from django.contrib import admin
from django.contrib.admin import display
from django.utils.translation import gettext_lazy as _

from ..models import ContentRead
from ..states import ContentPage
from . import base, filters
from .base import ReadOnlyAdmin, Shown


@admin.register(ContentRead)
class ContentReadAdmin(ReadOnlyAdmin):
    ids = ("session_id",)
    search_help_text = _("Session id from the beginning")
    ordering = ("-pk",)
    list_display_links: Any = None
    list_display = ("read", "reader_cell", "page_label", "session_page")
    list_filter = (filters.SessionFilter, filters.ReaderFilter)
    fieldsets = ((None, {"fields": ("read", "reader_cell", "page_label", "session_page")}),)

    read = base.time_field("read_at", _("read at"))
    reader_cell = base.cell_field("reader", _("reader"))
    session_page = base.session_link()

    @display(description=_("page"))
    def page_label(self, obj: ContentRead) -> Shown:
        return str(ContentPage(obj.page).label)
