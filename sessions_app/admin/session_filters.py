"""By what sessions are found: what has an index says so (`keyset.Seeking`)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..console import values
from ..ids import id_at
from ..services.metadata import metadata_term
from ..states import SessionStatus
from .filters import Choices, Since, TextFilter
from .seeking import Seeking, Side

_YEARS = range(1971, 9999)


class StatusFilter(Seeking, SimpleListFilter):
    """The *effective* status. A deleted session shows only to those who ask (report DEL-02)."""

    title, parameter_name = gettext_lazy("status"), "status"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return list(SessionStatus.choices)

    def choices(self, changelist: Any) -> Iterator[Any]:
        everything, *statuses = super().choices(changelist)
        yield {**everything, "display": _("All but deleted")}
        yield from statuses

    @cached_property
    def now(self) -> datetime:
        return timezone.now()

    def sides(self) -> Sequence[Side]:
        """No index has the active ones: each append would have to change it."""
        lapsed = Q(status=SessionStatus.ACTIVE, expires_at__lte=self.now)
        deleted = Q(status=SessionStatus.DELETED)
        waiting = deleted & Q(purged_at__isnull=True)
        known: dict[str, tuple[Side, ...]] = {
            SessionStatus.CLOSED: (Side(Q(status=SessionStatus.CLOSED)),),
            SessionStatus.EXPIRED: (
                Side(Q(status=SessionStatus.EXPIRED)),
                Side(lapsed, is_narrow=True),
            ),
            SessionStatus.DELETED: (
                Side(deleted & Q(purged_at__isnull=False)),
                Side(waiting, is_narrow=True),
            ),
        }
        return known.get(self.value() or "", ())

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if value := self.value():
            return queryset.with_status([value], now=self.now)
        return queryset.exclude(status=SessionStatus.DELETED)


class FailedRunFilter(Seeking, SimpleListFilter):
    title, parameter_name = gettext_lazy("failed runs"), "failed"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return [("yes", _("Has a failed run"))]

    def sides(self) -> Sequence[Side]:
        return (Side(Q(failed_run_count__gt=0)),) if self.value() == "yes" else ()

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        return queryset.filter(failed_run_count__gt=0) if self.value() == "yes" else queryset


class OpenToolCallsFilter(Seeking, SimpleListFilter):
    title, parameter_name = gettext_lazy("unanswered tool calls"), "open_calls"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return [("yes", _("Has unanswered tool calls")), ("no", _("Has none"))]

    def sides(self) -> Sequence[Side]:
        return (Side(Q(open_tool_call_count__gt=0)),) if self.value() == "yes" else ()

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if (value := self.value()) not in {"yes", "no"}:
            return queryset
        return queryset.with_open_tool_calls(value == "yes")


class ExpiryFilter(Seeking, SimpleListFilter):
    title, parameter_name = gettext_lazy("expires"), "expires"
    periods = {
        "1h": (gettext_lazy("In the next hour"), timedelta(hours=1)),
        "24h": (gettext_lazy("In the next 24 hours"), timedelta(days=1)),
    }

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Choices:
        return [(key, label) for key, (label, _length) in self.periods.items()]

    @cached_property
    def span(self) -> tuple[datetime, datetime] | None:
        now = timezone.now()
        found = self.periods.get(self.value() or "")
        return (now, now + found[1]) if found else None

    def sides(self) -> Sequence[Side]:
        if not self.span:
            return ()
        now, until = self.span
        soon = Q(status=SessionStatus.ACTIVE, expires_at__gt=now, expires_at__lte=until)
        return (Side(soon, is_narrow=True),)

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if not self.span:
            return queryset
        now, until = self.span
        return queryset.expiring(now=now, until=until)


class IndexedText(Seeking, TextFilter):
    """A typed value by which an index finds few sessions."""

    def sides(self) -> Sequence[Side]:
        value = (self.value() or "").strip()
        if not value or "\x00" in value:
            return ()
        return (Side(Q(**{self.lookup: value}) & self.accounts(), is_narrow=True),)

    def accounts(self) -> Q:
        return Q()


class UserFilter(IndexedText):
    title, parameter_name, lookup = gettext_lazy("user"), "user", "user_id"

    def accounts(self) -> Q:
        return _of_accounts(self.request)


class AccountFilter(IndexedText):
    title, parameter_name, lookup = gettext_lazy("account"), "account", "account__username"


def _of_accounts(request: HttpRequest) -> Q:
    """Of the account that is asked for, or else of each: the indexes of users and of last activity
    begin with it, and find nothing without."""
    named = request.GET.get(AccountFilter.parameter_name, "").strip()
    accounts = User.objects.filter(username=named.replace("\x00", "")) if named else User.objects
    return Q(account__in=accounts.values("pk"))


class MetadataFilter(Seeking, TextFilter):
    title, parameter_name = gettext_lazy("metadata"), "metadata"
    placeholder = gettext_lazy("key=value")

    @cached_property
    def term(self) -> Any:
        key, equals, value = (self.value() or "").partition("=")
        return metadata_term(key.strip(), value.strip()) if equals else None

    def sides(self) -> Sequence[Side]:
        return (Side(is_narrow=True),) if self.term else ()

    def indexed(self, side: Side, rows: Any) -> QuerySet:
        return rows.with_metadata([self.term])

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet:
        if not (self.value() or "").strip():
            return queryset
        if not self.term:
            messages.warning(request, _("Metadata is found by key=value, for example tier=gold."))
            return queryset.none()
        return queryset.with_metadata([self.term])


class ActivityFilter(Seeking, Since):
    """Sessions that were active in a range of time: begun before it ended, and not left before it
    began. The range is a period up to now, or lies between two moments.

    Those that were active since the range began are found by each account's index of activity,
    unless they are many. An index across accounts would cost each append a write.
    """

    title, parameter_name = gettext_lazy("activity"), "active"
    column = "last_activity_at"
    bounds = ("active_from", "active_to")

    def __init__(self, request: HttpRequest, params: Any, model: Any, admin: ModelAdmin) -> None:
        super().__init__(request, params, model, admin)
        self.given = {name: params.pop(name, [""])[-1].strip() for name in self.bounds}
        self.moments = {name: _moment(text) for name, text in self.given.items()}

    def expected_parameters(self) -> list[str | None]:
        return [self.parameter_name, *self.bounds]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """A period takes the place of two moments."""
        everything, *periods = super().choices(changelist)
        is_range = any(self.given.values())
        yield {**everything, "selected": everything["selected"] and not is_range}
        for choice, (key, _label) in zip(periods, self.lookup_choices, strict=True):
            query = changelist.get_query_string({self.parameter_name: key}, list(self.bounds))
            yield {**choice, "query_string": query}

    def typed_range(self, changelist: Any) -> dict[str, Any]:
        """Two fields in UTC, which the page's script shows in the viewer's zone."""
        mine = {*self.expected_parameters()}
        words = zip(self.bounds, (_("From"), _("Until")), strict=True)
        return {
            "fields": [(name, label, _for_a_field(self.moments[name])) for name, label in words],
            "others": [item for item in changelist.params.items() if item[0] not in mine],
            "chosen": self._chosen() if any(self.moments.values()) else "",
        }

    def _chosen(self) -> SafeString:
        since, until = (self.moments[name] for name in self.bounds)
        ends = (values.moment(moment) if moment else "…" for moment in (since, until))
        return format_html("{} {} {}", next(ends), values.NOTHING, next(ends))

    @cached_property
    def since(self) -> datetime | None:
        """The latest moment before which nobody is asked for."""
        period = self.periods.get(self.value() or "")
        begins = [self.moments["active_from"], period and timezone.now() - period[1]]
        return max(filter(None, begins), default=None)

    def sides(self) -> Sequence[Side]:
        if not self.since:
            return ()
        active = Q(last_activity_at__gte=self.since) & _of_accounts(self.request)
        return (Side(active, is_narrow=True),)

    @property
    def below(self) -> str | None:  # type: ignore[override]
        """Later sessions begin with greater keys."""
        until = self.moments["active_to"]
        return id_at("sess", until + timedelta(minutes=1)) if until else None

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if any(text and not self.moments[name] for name, text in self.given.items()):
            messages.warning(request, _("A time is written like 2026-11-30T09:00 (UTC)."))
            return queryset.none()
        found = queryset.filter(last_activity_at__gte=self.since) if self.since else queryset
        until = self.moments["active_to"]
        return found.filter(created_at__lte=until, pk__lt=self.below) if until else found


def _moment(text: str) -> datetime | None:
    """As a browser writes it, in UTC where it names no zone; None for what is no time.

    Only of years that ids and both databases know.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC) if known.year in _YEARS else None


def _for_a_field(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%dT%H:%M}" if moment else ""
