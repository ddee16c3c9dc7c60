"""What the parts of a run's page show; each thing is read once, and only if it is asked for."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.contrib.admin.utils import quote
from django.urls import reverse

from sessions_app.admin.base import address
from sessions_app.console.addresses import session_url
from sessions_app.console.durations import duration
from sessions_app.console.memory_view import Comparison, compared
from sessions_app.console.values import dollars, number
from sessions_app.models import Message, ToolCall
from sessions_app.states import ActorType

from ..console.durations import end_of, is_live, run_status, took
from ..console.errors import Fault, fault_of
from ..models import Run
from ..services import inspection
from ..services.inspection import MemoryChange, Some
from ..states import RunStatus
from .addresses import records_url, run_url
from .excerpts import Excerpt, excerpts
from .timeline import Timeline

_DOCUMENTS = ("input", "output", "error", "metadata")


class Inspector:
    def __init__(self, run: Run, *, may_read: bool, may_settle: bool, now: datetime) -> None:
        self.run, self.may_read, self.may_settle, self.now = run, may_read, may_settle, now

    # --- facts ---

    @cached_property
    def status(self) -> RunStatus:
        return run_status(self.run, now=self.now)

    @property
    def is_live(self) -> bool:
        return is_live(self.run, now=self.now)

    @property
    def ended_at(self) -> datetime | None:
        return end_of(self.run, now=self.now)

    @property
    def took(self) -> str:
        return took(self.run, now=self.now)

    @property
    def lease(self) -> str:
        return duration(timedelta(seconds=self.run.lease_seconds))

    @property
    def cached(self) -> str:
        return number(self.run.cached_input_tokens)

    @property
    def reasoning(self) -> str:
        return number(self.run.reasoning_tokens)

    @property
    def cost(self) -> str:
        return dollars(self.run.cost_nanousd)

    @property
    def fault(self) -> Fault | None:
        return fault_of(self.run.error) if self.may_read else None

    @property
    def downloads(self) -> dict[str, str]:
        name = "admin:runs_app_run_download"
        return {each: reverse(name, args=[quote(self.run.pk), each]) for each in _DOCUMENTS}

    @property
    def urls(self) -> dict[str, str]:
        run = self.run
        return {
            "session": session_url(run.session_id),
            "parent": run_url(run.parent_run_id) if run.parent_run_id else "",
            "retry_of": run_url(run.retry_of_id) if run.retry_of_id else "",
            "cancel": f"{reverse('admin:runs_app_run_cancel')}?id={run.pk}",
            "calls": records_url("toolcall", run.pk),
            "messages": records_url("message", run.pk),
        }

    # --- what it did ---

    @cached_property
    def calls(self) -> Some[ToolCall]:
        return inspection.calls_of(self.run)

    @cached_property
    def children(self) -> Some[Run]:
        return inspection.children_of(self.run)

    @cached_property
    def messages(self) -> Some[Message]:
        return inspection.messages_of(self.run)

    @cached_property
    def shown_messages(self) -> list[Excerpt]:
        return excerpts(self.messages.rows, may_read=self.may_read)

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline(
            self.run,
            calls=self.calls,
            children=self.children,
            messages=inspection.marks_of(self.run),
            events=self.events.rows,
            settle_url=reverse("admin:sessions_app_toolcall_settle") if self.may_settle else "",
            now=self.now,
        )

    @cached_property
    def events(self) -> Some[Any]:
        return inspection.events_of(self.run)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The run's events, newest first, each with the attempt that it began."""
        attempt, rows = 0, []
        for event in self.events.rows:
            begins = event.to_status == RunStatus.RUNNING
            attempt += begins
            rows.append(
                {
                    "event": event,
                    "attempt": attempt if begins and not self.events.has_more else None,
                    "to": RunStatus(event.to_status),
                    "actor_type": ActorType(event.actor_type).label,
                }
            )
        return rows[::-1]

    # --- what it knew ---

    @cached_property
    def memory(self) -> MemoryChange:
        return inspection.memory_of(self.run, until=self.ended_at or self.now)

    @property
    def memory_fields(self) -> list[Comparison]:
        """The fields that hold anything, before or after."""
        found = compared(self.memory.before, self.memory.after)
        return [each for each in found if each.lines]

    @property
    def memory_urls(self) -> dict[str, str]:
        page = "sessions_app_workingmemoryrevision_change"
        found = {"before": self.memory.before, "after": self.memory.after}
        return {name: address(page, str(each.pk)) for name, each in found.items() if each}
