"""Tool calls: what was really done, also by agents that record tools without chat messages."""

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.fields import (
    JSONValueField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)
from sessions_app.api.query import Choices, Text
from sessions_app.api.representations import represent_tool_call
from sessions_app.api.response import Response
from sessions_app.api.schema import LOCATION
from sessions_app.api.shapes import ToolCallOut, ToolCallSettledOut
from sessions_app.services import Outcome, SessionManager
from sessions_app.services.content_reads import record_read_of_others
from sessions_app.services.lifecycle import MAX_REASON
from sessions_app.services.pairing import MAX_TOOL_CALL_ID, MAX_TOOL_NAME
from sessions_app.services.recording import (
    MAX_DURATION_MS,
    MAX_ERROR_MESSAGE,
    MAX_ERROR_TYPE,
)
from sessions_app.states import FINAL_TOOL_CALLS, ToolCallStatus


class NewToolCallIn(StrictSerializer):
    tool_call_id = StrictCharField(
        required=False,
        allow_null=True,
        max_length=MAX_TOOL_CALL_ID,
        help_text="The provider's id; a call that a message made under it is the one that starts.",
    )
    name = StrictCharField(max_length=MAX_TOOL_NAME, allow_blank=False)
    arguments = JSONValueField(required=False)
    run_id = StrictCharField(required=False, allow_null=True, max_length=255)
    attempt = StrictIntegerField(required=False, allow_null=True, min_value=0)

    class Meta:
        ref_name = "NewToolCall"


class ToolCallErrorIn(StrictSerializer):
    type = StrictCharField(required=False, allow_null=True, max_length=MAX_ERROR_TYPE)
    message = StrictCharField(
        required=False,
        allow_null=True,
        max_length=MAX_ERROR_MESSAGE,
        help_text="For people; what is longer belongs into the `result`.",
    )

    class Meta:
        ref_name = "ToolCallError"


class OutcomeIn(StrictSerializer):
    status = StrictChoiceField(choices=sorted(FINAL_TOOL_CALLS))
    result = JSONValueField(required=False)
    error = ToolCallErrorIn(required=False, allow_null=True)
    duration_ms = StrictIntegerField(
        required=False, allow_null=True, min_value=0, max_value=MAX_DURATION_MS
    )

    class Meta:
        ref_name = "ToolCallOutcome"


class SettlementIn(StrictSerializer):
    reason = StrictCharField(max_length=MAX_REASON)

    class Meta:
        ref_name = "ToolCallSettlement"


class ToolCallsView(DomainView):
    parameters = {
        "GET": [
            Choices(name="status", choices=ToolCallStatus.values),
            Text(name="name"),
            Text(name="run_id"),
        ]
    }
    bodies = {"POST": NewToolCallIn}
    etags = frozenset({"POST"})
    paginated = True

    @extend_schema(
        operation_id="list_tool_calls",
        summary="List a session's tool calls, newest first",
        responses=ToolCallOut(many=True),
    )
    def get(self, request: Request, session_id: str) -> Response:
        calls = SessionManager(self.actor).tool_calls(session_id=session_id)
        found = calls.matching(
            statuses=self.params["status"], name=self.params["name"], run_id=self.params["run_id"]
        )
        return self.page(found.order_by("-id"), represent_tool_call)

    @extend_schema(
        operation_id="start_tool_call",
        summary="Record that a tool starts",
        description="201 for a new call; 200 for one that a message made, or that runs already.",
        parameters=[LOCATION],
        responses={201: ToolCallOut, 200: ToolCallOut},
    )
    def post(self, request: Request, session_id: str) -> Response:
        call, is_new = SessionManager(self.actor).start_tool_call(
            session_id=session_id, if_match=self.if_match, **self.valid
        )
        where = {"Location": reverse("tool-call", args=[call.id])} if is_new else {}
        return self.respond(represent_tool_call(call), status=201 if is_new else 200, headers=where)


class ToolCallView(DomainView):
    @extend_schema(operation_id="get_tool_call", summary="Read a tool call", responses=ToolCallOut)
    def get(self, request: Request, id: str) -> Response:
        call = SessionManager(self.actor).tool_call(id=id)
        record_read_of_others(actor=self.actor, session_id=call.session_id)
        return self.respond(represent_tool_call(call))


class FinishView(DomainView):
    bodies = {"POST": OutcomeIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="finish_tool_call",
        summary="Record how a tool ended",
        description="A final status stays; what the call still lacks is filled in.",
        responses=ToolCallOut,
    )
    def post(self, request: Request, id: str) -> Response:
        given = dict(self.valid)
        outcome = Outcome(
            status=ToolCallStatus(given.pop("status")), has_result="result" in given, **given
        )
        call = SessionManager(self.actor).finish_tool_call(
            id=id, outcome=outcome, if_match=self.if_match
        )
        self.keep_session(call.session_id)
        return self.respond(represent_tool_call(call))


class SettleView(DomainView):
    bodies = {"POST": SettlementIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="settle_tool_call",
        summary="Close an unanswered tool call",
        description="Once, with its reason in the events; no message is inserted.",
        responses=ToolCallSettledOut,
    )
    def post(self, request: Request, id: str) -> Response:
        call, changed = SessionManager(self.actor).settle_tool_call(
            id=id, if_match=self.if_match, **self.valid
        )
        self.keep_session(call.session_id)
        return self.respond(represent_tool_call(call) | {"changed": changed})
