"""How far decisions about many sessions have come, and what has become of them."""

from functools import cached_property
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from ..admin.operations import explain_code, failed, stays
from ..admin.session_operations import OPERATIONS, SessionOperation
from ..console.registry import register
from ..models import BulkMove
from ..services import bulk
from ..states import BulkEnd, BulkOutcome, SessionStatus
from .base import ConsolePage, Crumb

# As long as somebody waits for the next picture of it.
_STEP = 1.0
_MOST_NAMED = 20
_MOST_MOVES = 50


@register
class BulkMovePage(ConsolePage):
    """While its operator has it open, it asks for step after step (`static/console/bulk.js`).

    Others see how it stands, and may stop it if they have the right to do the same.
    """

    route, name = "sessions/bulk/<str:bulk_id>/", "bulk_move"
    permission = "sessions_app.view_session"
    template_name = "console/bulk.html"
    fragment_name = "console/bulk_progress.html"

    @cached_property
    def move(self) -> BulkMove:
        # PostgreSQL cannot even ask for U+0000.
        bulk_id = self.kwargs["bulk_id"].replace("\x00", "")
        found = bulk.decided().filter(pk=bulk_id).first()
        if found is None:
            raise Http404
        return found

    @property
    def operation(self) -> type[SessionOperation]:
        return OPERATIONS[SessionStatus(self.move.to_status)]

    @property
    def may_stop(self) -> bool:
        return self.request.user.has_perm(self.operation.permission)

    @property
    def may_drive(self) -> bool:
        """Nobody is made to do another's work by looking at it: that is left to the sweep."""
        return self.may_stop and self.move.account_id == self.request.user.pk

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        if not (self.may_stop if "stop" in request.POST else self.may_drive):
            raise PermissionDenied
        if "stop" in request.POST:
            bulk.stop(self.move, actor=self.actor)
        else:
            bulk.step(self.move, seconds=_STEP)
        if getattr(request, "htmx", False):
            return self.render()
        return HttpResponseRedirect(request.path)

    def crumbs(self) -> list[Crumb]:
        return [
            Crumb(_("Sessions"), reverse("admin:sessions_app_session_changelist")),
            Crumb(_("Decisions about many"), reverse("admin:bulk_moves")),
        ]

    def content(self) -> dict[str, Any]:
        move = self.move
        move.refresh_from_db()
        counts = self._counts()
        left = sum(count for (outcome, _why), count in counts.items() if outcome is None)
        return {
            "title": self.operation.of_all,
            "move": move,
            "done": move.total - left,
            "left": left,
            "percent": 100 * (move.total - left) // max(1, move.total),
            "may_drive": self.may_drive,
            "may_stop": self.may_stop,
            "did": self._did(counts),
            "kept": self._kept(counts),
            "refused": self._refused(counts),
            "is_withdrawn": move.end == BulkEnd.WITHDRAWN,
        }

    def _counts(self) -> dict[tuple[str | None, str], int]:
        grouped = self.move.targets.order_by().values_list("outcome", "why")
        return {(outcome, why): count for outcome, why, count in grouped.annotate(n=Count("pk"))}

    def _did(self, counts: dict[Any, int]) -> str:
        changed = counts.get((BulkOutcome.CHANGED, ""), 0)
        return str(self.operation.did % {"count": changed}) if changed else ""

    def _kept(self, counts: dict[Any, int]) -> list[str]:
        operation = self.operation()
        return [
            stays(count, str(operation.fate_of(SessionStatus(why)).why))
            for (outcome, why), count in counts.items()
            if outcome == BulkOutcome.KEPT
        ]

    def _refused(self, counts: dict[Any, int]) -> list[str]:
        bad = self.move.targets.filter(outcome=BulkOutcome.REFUSED).order_by("id")
        ids: dict[str, list[str]] = {}
        for why, session_id in bad.values_list("why", "session_id")[:_MOST_NAMED]:
            ids.setdefault(why, []).append(session_id)
        return [
            failed(ids.get(why, []), explain_code(why), count=count)
            for (outcome, why), count in counts.items()
            if outcome == BulkOutcome.REFUSED
        ]


@register
class BulkMovesPage(ConsolePage):
    """The newest decisions, those that are over, too."""

    route, name = "sessions/bulk/", "bulk_moves"
    permission = "sessions_app.view_session"
    template_name = "console/bulk_moves.html"

    def crumbs(self) -> list[Crumb]:
        return [Crumb(_("Sessions"), reverse("admin:sessions_app_session_changelist"))]

    def content(self) -> dict[str, Any]:
        newest = bulk.decided()[:_MOST_MOVES]
        rows = [(move, OPERATIONS[SessionStatus(move.to_status)].of_all) for move in newest]
        return {"title": _("Decisions about many sessions"), "rows": rows, "kept": bulk.KEPT.days}
