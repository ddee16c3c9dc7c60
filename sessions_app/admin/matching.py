"""Operations on all that match a filter: forecast by counting, then done in steps.

Asking writes down which sessions are meant (`services.bulk`): those that come to match while the
operator thinks are none of them, and the page that asks again still speaks of the same ones.
"""

from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from ..actors import Actor
from ..console.values import number
from ..models import BulkMove, Session
from ..querysets import SessionQuerySet
from ..services import bulk
from ..states import SessionStatus
from .confirm import MOST_AT_ONCE, ConfirmForm, OperatedAdmin
from .keyset import ID, KeysetListing
from .operations import Fate, Operation, stays
from .session_operations import SessionOperation

# What is done while the operator waits for the next page.
_AT_FIRST = 1.5
_MOST_TOLD = 3
_MOST_SHOWN = 20


class Matching(KeysetListing):
    """What the filters of a list find, without a page of it."""

    result_list: Any = ()

    def get_results(self, request: HttpRequest) -> None:
        pass


class Forecast:
    """What a confirm page says of sessions that nobody has chosen one by one."""

    def __init__(self, operation: SessionOperation, draft: BulkMove) -> None:
        now = timezone.now()
        targets = draft.targets.order_by("id").values("session_id")
        meant = Session.objects.filter(pk__in=targets)
        self.changing, self.has_more = draft.total, draft.has_more
        self.will = str(operation.will % {"count": draft.total})
        leaving = meant.with_status(operation.leaves, now=now)
        self.consequences = operation.effects(leaving, now=now) if draft.total else []
        counts = {SessionStatus(status): count for status, count in draft.staying.items()}
        self.counts_all = sum(counts.values()) <= bulk.MOST_TARGETS
        self.staying = [
            stays(count, str(operation.fate_of(status).why)) for status, count in counts.items()
        ]
        shown = meant.defer("metadata", "search_text").order_by("-pk")[:_MOST_SHOWN]
        self.fates = [(obj, Fate(True)) for obj in shown]

    @property
    def note(self) -> str:
        most = {"most": number(bulk.MOST_TARGETS)}
        if self.has_more:
            return _("More than %(most)s would change: these are the newest %(most)s of them.") % (
                most
            )
        if not self.counts_all:
            return _("More than %(most)s stay as they are; the others are not counted.") % most
        return ""

    @property
    def shown(self) -> str:
        """Above those that are named."""
        if self.changing <= len(self.fates):
            return ""
        return _("The newest %(count)s of them") % {"count": number(len(self.fates))}


class MatchingAdmin(OperatedAdmin):
    """Adds "all that match" to the operations of a list."""

    takes_all = True

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        if _asks_for_all(request):
            return self._ask_for_all(request)
        shown = {"going_on": list(bulk.going_on().order_by("-worked_at")[:_MOST_TOLD])}
        return super().changelist_view(request, shown | (extra_context or {}))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        if _asks_for_all(request) or getattr(request, "takes_all", False):
            return Matching
        return super().get_changelist(request, **kwargs)

    def operate(self, request: HttpRequest, operation: Operation) -> HttpResponseBase:
        if request.method == "POST" and "move" in request.POST and self.may(request, operation):
            return self._decide(request, operation, request.POST["move"])
        return super().operate(request, operation)

    # --- asked ---

    def _ask_for_all(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):
            return super().changelist_view(request)
        named = {operation.name: operation for operation in self.permitted(request)}
        operation = named.get(request.POST.get("action", ""))
        if operation is None:
            messages.warning(request, _("No action selected."))
            return HttpResponseRedirect(request.get_full_path())
        found = self.matching(request)
        few = list(found.values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
        if len(few) <= MOST_AT_ONCE:
            return self.confirm_or_nothing(request, operation, few)
        return self._ask_for(request, operation, _draft(request, operation, found))

    def matching(self, request: HttpRequest) -> SessionQuerySet:
        """All that the filters find, on whatever page, the newest first."""
        request.takes_all = True  # type: ignore[attr-defined]
        try:
            listing = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            return Session.objects.none()
        # A search that was not understood finds all in a list, after a warning.
        if listing.query != request.GET.get(SEARCH_VAR, ""):
            return Session.objects.none()
        found: Any = listing.queryset
        return found.order_by("-pk")

    def _ask_for(
        self, request: HttpRequest, operation: Any, draft: BulkMove, form: Any = None
    ) -> HttpResponseBase:
        plan = Forecast(operation, draft)
        form = form or _form(operation, draft, None)
        more = {"move": draft, "title": operation.of_all}
        return self.confirm_page(request, operation, plan, form, from_list=True, more=more)

    # --- decided ---

    def _decide(self, request: HttpRequest, operation: Any, bulk_id: str) -> HttpResponseBase:
        known = bulk_id if ID.fullmatch(bulk_id) else ""
        draft = bulk.asked(_user(request), known, to=operation.to)
        if draft is None:
            messages.warning(request, _("Nothing was changed: this was asked too long ago."))
            return HttpResponseRedirect(self.list_url(request))
        form = _form(operation, draft, request.POST)
        if draft.confirmed_at is None:
            if not form.is_valid():
                return self._ask_for(request, operation, draft, form)
            bulk.confirm(draft, reason=form.cleaned_data["reason"])
            bulk.step(draft, seconds=_AT_FIRST)
        return HttpResponseRedirect(reverse("admin:bulk_move", args=[draft.pk]))


def _asks_for_all(request: HttpRequest) -> bool:
    return request.method == "POST" and request.POST.get("select_across") == "1"


def _draft(request: HttpRequest, operation: Any, found: SessionQuerySet) -> BulkMove:
    """Only what would change takes a place among the most that are taken at once."""
    now, most = timezone.now(), bulk.MOST_TARGETS + 1
    leaving = found.with_status(operation.leaves, now=now).values_list("pk", flat=True)
    others: Any = found.with_status(set(SessionStatus) - operation.leaves, now=now)
    staying = Session.objects.filter(pk__in=others.values("pk")[:most]).count_by_status(now=now)
    return bulk.draft(
        actor=Actor.operator(_user(request)),
        to=operation.to,
        session_ids=list(leaving[:most]),
        staying={status: count for status, count in staying.items() if count},
    )


def _form(operation: SessionOperation, draft: BulkMove, data: Any) -> ConfirmForm:
    proof = str(draft.total) if operation.irreversible and draft.total else None
    return ConfirmForm(data, proof=proof, proof_label=_("Type how many will be deleted to go on"))


def _user(request: HttpRequest) -> User:
    return request.user  # type: ignore[return-value]
