"""Filters that never ask a big table for its distinct values (report ADM-01)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..services.drafts import ROLES
from ..states import Subject, ToolCallStatus

Choices = list[tuple[str, Any]]


class TextFilter(SimpleListFilter):
    """A value that is typed and compared exactly; ``lookup`` is the column."""

    is_typed = True
    lookup: str
    placeholder: Any = ""

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return []

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        mine = {self.parameter_name, PAGE_VAR}
        yield {
            "value": self.value() or "",
            "placeholder": self.placeholder,
            "others": [item for item in changelist.params.items() if item[0] not in mine],
            "clear": changelist.get_query_string(remove=[str(self.parameter_name)]),
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        if not value:
            return queryset
        # PostgreSQL cannot even ask for U+0000, and no stored value holds it.
        return queryset.none() if "\x00" in value else queryset.filter(**{self.lookup: value})


class AgentFilter(TextFilter):
    title, parameter_name, lookup = _("agent"), "agent", "agent_id"


class SessionFilter(TextFilter):
    title, parameter_name, lookup = _("session id"), "session", "session_id"


class RunFilter(TextFilter):
    title, parameter_name, lookup = _("run id"), "run", "run_id"


class ReaderFilter(TextFilter):
    title, parameter_name, lookup = _("reader"), "reader", "reader"


class ToolFilter(TextFilter):
    title, parameter_name, lookup = _("tool"), "tool", "name"


class Since(SimpleListFilter):
    column: str
    periods = {
        "1h": (_("Past hour"), timedelta(hours=1)),
        "24h": (_("Past 24 hours"), timedelta(days=1)),
        "7d": (_("Past 7 days"), timedelta(days=7)),
        "30d": (_("Past 30 days"), timedelta(days=30)),
    }

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return [(key, label) for key, (label, _length) in self.periods.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if (value := self.value()) not in self.periods:
            return queryset
        since = timezone.now() - self.periods[value][1]
        return queryset.filter(**{f"{self.column}__gte": since})


class CreatedFilter(Since):
    title, parameter_name, column = _("created at"), "created", "created_at"


class _Fixed(SimpleListFilter):
    """One of a few values that are known beforehand."""

    column: str
    known: Choices

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return self.known

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        known = {key for key, _label in self.known}
        return queryset.filter(**{self.column: value}) if value in known else queryset


class RoleFilter(_Fixed):
    title, parameter_name, column = _("role"), "role", "role"
    known = [(role, role) for role in ROLES]


class ToolCallStatusFilter(_Fixed):
    title, parameter_name, column = _("status"), "status", "status"
    known = [("OPEN", _("Open")), *ToolCallStatus.choices]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if self.value() == "OPEN":
            return queryset.open()
        return super().queryset(request, queryset)


class SubjectFilter(_Fixed):
    title, parameter_name, column = _("subject"), "subject", "subject"
    known = list(Subject.choices)


class TokenAccountFilter(TextFilter):
    title, parameter_name, lookup = _("account"), "account", "user__username"
