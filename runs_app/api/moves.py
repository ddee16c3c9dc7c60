"""What moves a run through its life; each call may name the attempt that it speaks for."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from runs_app.api.runs import RunDoor
from runs_app.api.shapes import RunHeartbeatOut, RunOut
from runs_app.services import RunManager
from runs_app.services.creation import MAX_WAIT
from runs_app.states import RunStatus
from sessions_app.api.fields import (
    JSONObjectField,
    JSONValueField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from sessions_app.api.response import Response
from sessions_app.services.lifecycle import MAX_REASON
from sessions_app.usage import Usage


def usage_field() -> JSONObjectField:
    return JSONObjectField(
        required=False,
        allow_null=True,
        help_text="Replaces what the run's messages have counted: `input_tokens`, "
        "`output_tokens`, `cached_input_tokens`, `reasoning_tokens`, `cost_usd`.",
    )


class AttemptIn(StrictSerializer):
    attempt = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        help_text="An older one than the run's is refused: another worker has taken over.",
    )

    class Meta:
        ref_name = "RunAttempt"


class WaitIn(AttemptIn):
    reason = StrictCharField(max_length=MAX_REASON)
    timeout_seconds = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_WAIT,
        help_text="Default: seven days, unless the server is set otherwise.",
    )

    class Meta:
        ref_name = "RunWait"


class CompletionIn(AttemptIn):
    output = JSONValueField(required=False, help_text="Any JSON: what came of it.")
    usage = usage_field()

    class Meta:
        ref_name = "RunCompletion"


class RunErrorIn(StrictSerializer):
    type = StrictCharField(max_length=255)
    message = StrictCharField()
    retryable = StrictBooleanField(required=False)

    class Meta:
        ref_name = "RunError"


class FailureIn(AttemptIn):
    error = RunErrorIn()
    usage = usage_field()

    class Meta:
        ref_name = "RunFailure"


class CancellationIn(AttemptIn):
    reason = StrictCharField(required=False, allow_null=True, max_length=MAX_REASON)

    class Meta:
        ref_name = "RunCancellation"


class StartView(RunDoor):
    bodies = {"POST": AttemptIn}
    etags = frozenset({"POST"})

    @extend_schema(operation_id="start_run", summary="Start a queued run", responses=RunOut)
    def post(self, request: Request, run_id: str) -> Response:
        RunManager(self.actor).start(run_id=run_id, if_match=self.if_match, **self.valid)
        return self.answer(run_id)


class HeartbeatView(RunDoor):
    bodies = {"POST": AttemptIn}

    @extend_schema(
        operation_id="heartbeat_run",
        summary="Renew a run's lease",
        description="The answer of a cancelled run says so, and renews nothing.",
        responses=RunHeartbeatOut,
    )
    def post(self, request: Request, run_id: str) -> Response:
        run = RunManager(self.actor).heartbeat(run_id=run_id, **self.valid)
        return self.answer(run_id, cancel_requested=run.status == RunStatus.CANCELLED)


class WaitView(RunDoor):
    bodies = {"POST": WaitIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="wait_run",
        summary="Let a run wait for something outside",
        responses=RunOut,
    )
    def post(self, request: Request, run_id: str) -> Response:
        RunManager(self.actor).wait(run_id=run_id, if_match=self.if_match, **self.valid)
        return self.answer(run_id)


class CompleteView(RunDoor):
    bodies = {"POST": CompletionIn}
    etags = frozenset({"POST"})

    @extend_schema(operation_id="complete_run", summary="End a run well", responses=RunOut)
    def post(self, request: Request, run_id: str) -> Response:
        given = _with_usage(self.valid)
        RunManager(self.actor).complete(run_id=run_id, if_match=self.if_match, **given)
        return self.answer(run_id)


class FailView(RunDoor):
    bodies = {"POST": FailureIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="fail_run",
        summary="End a run badly, also one that was interrupted",
        responses=RunOut,
    )
    def post(self, request: Request, run_id: str) -> Response:
        given = _with_usage(self.valid)
        RunManager(self.actor).fail(run_id=run_id, if_match=self.if_match, **given)
        return self.answer(run_id)


class CancelView(RunDoor):
    bodies = {"POST": CancellationIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="cancel_run",
        summary="Cancel a run at once, whether or not its worker lives",
        responses=RunOut,
    )
    def post(self, request: Request, run_id: str) -> Response:
        RunManager(self.actor).cancel(run_id=run_id, if_match=self.if_match, **self.valid)
        return self.answer(run_id)


class ResumeRunView(RunDoor):
    bodies = {"POST": AttemptIn}
    etags = frozenset({"POST"})

    @extend_schema(
        operation_id="resume_run",
        summary="Go on with an interrupted or waiting run: the next attempt",
        responses=RunOut,
    )
    def post(self, request: Request, run_id: str) -> Response:
        RunManager(self.actor).resume(run_id=run_id, if_match=self.if_match, **self.valid)
        return self.answer(run_id)


def _with_usage(given: Mapping[str, Any]) -> dict[str, Any]:
    """The body with its usage read; null says nothing, where an empty object would say zero."""
    raw = given.get("usage")
    usage = None if raw is None else Usage.from_client(raw, pointer="/usage")
    return {**given, "usage": usage}
