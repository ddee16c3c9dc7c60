"""Runs: creating and finding them."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from runs_app.api.representations import represent_run
from runs_app.api.shapes import RunOut
from runs_app.services import NewRun, RunManager
from runs_app.services.creation import MAX_LEASE, MIN_LEASE
from runs_app.services.reading import RunFilters
from runs_app.states import RunStatus
from sessions_app.api.base import DomainView
from sessions_app.api.fields import (
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
    nullable_name,
)
from sessions_app.api.query import Choices, Flag, Instant, Text
from sessions_app.api.response import Response
from sessions_app.api.schema import LOCATION
from sessions_app.services.content_reads import record_read_of_others


class NewRunIn(StrictSerializer):
    input = JSONValueField(required=False, help_text="Any JSON: what the run is to do.")
    agent_id = nullable_name(help_text="Default: the session's.")
    model = nullable_name()
    metadata = JSONObjectField(required=False, allow_null=True)
    if_active = StrictChoiceField(
        choices=["reject", "cancel", "queue"],
        required=False,
        help_text="When another run is started: refuse (the default), cancel that one first, or "
        "leave the new one `PENDING`.",
    )
    lease_seconds = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=MIN_LEASE,
        max_value=MAX_LEASE,
        help_text="Without a sign of life for so long, the run is `INTERRUPTED`.",
    )
    start = StrictBooleanField(required=False, help_text="Default true; false: `PENDING`.")
    retry_of = nullable_name(help_text="An earlier run of the session.")
    parent_run_id = nullable_name(
        help_text="An unfinished run of the session: the new one is its child, and ends with it. "
        "At most two levels below a top-level run."
    )

    class Meta:
        ref_name = "NewRun"


class RunDoor(DomainView):
    """What answers with one run."""

    def answer(self, run_id: str, *, status: int = 200, **more: Any) -> Response:
        """The run, read anew: the row that a write returns lacks what other rows say of it."""
        run = RunManager(self.actor).get(run_id=run_id)
        self.keep_session(run.session_id)
        return self.respond(represent_run(run, timezone.now()) | more, status=status)


class SessionRunsView(RunDoor):
    bodies = {"POST": NewRunIn}
    etags = frozenset({"POST"})
    paginated = True

    @extend_schema(
        operation_id="list_session_runs",
        summary="List a session's runs, newest first",
        responses=RunOut(many=True),
    )
    def get(self, request: Request, session_id: str) -> Response:
        now = timezone.now()
        runs = RunManager(self.actor).list_of(session_id=session_id)
        return self.page(runs.order_by("-run_id"), lambda run: represent_run(run, now))

    @extend_schema(
        operation_id="create_run",
        summary="Create a run, and start it",
        description="A session has one started run at a time, child runs aside.",
        parameters=[LOCATION],
        responses={201: RunOut},
    )
    def post(self, request: Request, session_id: str) -> Response:
        given = {name: value for name, value in self.valid.items() if value is not None}
        run = RunManager(self.actor).create(
            session_id=session_id, new=NewRun(**given), if_match=self.if_match
        )
        response = self.answer(run.run_id, status=201)
        response.headers["Location"] = reverse("run", args=[run.run_id])
        return response


class RunsView(DomainView):
    parameters = {
        "GET": [
            Choices(name="status", choices=RunStatus.values, description="Of this moment."),
            Text(name="agent_id"),
            Instant(name="started_after", description="Exclusive, as the other bound."),
            Instant(name="started_before"),
            Flag(
                name="stuck",
                default=False,
                description="Only unfinished runs without a sign of life for ten minutes.",
            ),
        ]
    }
    paginated = True

    @extend_schema(
        operation_id="list_runs",
        summary="List the runs of all sessions, newest first",
        responses=RunOut(many=True),
    )
    def get(self, request: Request) -> Response:
        now = timezone.now()
        given = {name: self.params[name] for name in RunFilters.__dataclass_fields__}
        found = RunManager(self.actor).find(filters=RunFilters(**given), now=now)
        return self.page(found.order_by("-run_id"), lambda run: represent_run(run, now))


class RunView(RunDoor):
    @extend_schema(operation_id="get_run", summary="Read a run", responses=RunOut)
    def get(self, request: Request, run_id: str) -> Response:
        answer = self.answer(run_id)
        record_read_of_others(actor=self.actor, session_id=str(self._session_id))
        return answer
