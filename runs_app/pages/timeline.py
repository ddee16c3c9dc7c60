"""The waterfall: the run itself, its messages, its tool calls and its child runs, row by row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from sessions_app.console.addresses import message_url
from sessions_app.console.durations import duration
from sessions_app.console.values import visible
from sessions_app.models import Message, SessionEvent, ToolCall
from sessions_app.states import OPEN_TOOL_CALLS, ToolCallStatus

from ..console.durations import run_status, took
from ..models import Run
from ..services.inspection import Some
from ..states import RunStatus
from .addresses import call_url, run_url
from .waterfall import Bar, Scale, Span, idle, phases, scale_of, span_of_call, span_of_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the waterfall; its words say all that its bars show."""

    key: str
    icon: str
    name: str
    url: str
    status: Any
    offset: str
    took: str
    bars: Sequence[Bar]
    settle_url: str = ""


class Timeline:
    """``settle_url`` is where an open call is settled, or empty if this account may not."""

    def __init__(
        self,
        run: Run,
        *,
        calls: Some[ToolCall],
        children: Some[Run],
        messages: Some[Message],
        events: Sequence[SessionEvent],
        settle_url: str,
        now: datetime,
    ) -> None:
        self.run, self.now, self.settle_url = run, now, settle_url
        self.span = span_of_run(run, now=now)
        self.calls = [(call, span_of_call(call, now=now)) for call in calls.rows]
        self.children = [(child, span_of_run(child, now=now)) for child in children.rows]
        self.messages = messages.rows
        self.events = events
        spans = [span for _each, span in (*self.calls, *self.children)]
        self.scale: Scale = scale_of(run, spans, now=now)
        self.rests = idle(self._known(calls, messages), spans, messages.rows)

    def _known(self, calls: Some[ToolCall], messages: Some[Message]) -> Span:
        """The time of which all is here: calls lack their end, messages their beginning."""
        begin, end = self.span
        begin = messages.rows[0].created_at if messages.has_more else begin
        end = self.calls[-1][1][0] if calls.has_more else end
        return begin, max(begin, end)

    @property
    def ticks(self) -> list[Any]:
        return self.scale.ticks()

    @property
    def idle_total(self) -> str:
        return duration(sum((end - begin for begin, end in self.rests), timedelta()))

    def own_bars(self) -> Iterator[Bar]:
        """The run's own row: in which status it was, and where nothing happened."""
        whole = list(phases(self.events, self.span)) or [("running", self.span)]
        for kind, span in whole:
            yield self.scale.bar(kind, span, str(RunStatus(kind.upper()).label))
        for span in self.rests:
            words = _("Idle for %(time)s") % {"time": duration(span[1] - span[0])}
            yield self.scale.bar("idle", span, words)

    def marks(self) -> list[tuple[str, str, str]]:
        """Where each message came: its place, its address and its number."""
        return [
            (
                f"{self.scale.at(message.created_at):.3f}%",
                message_url(self.run.session_id, message.sequence),
                visible(f"#{message.sequence} {message.role or message.type}"),
            )
            for message in self.messages
        ]

    def rows(self) -> list[Row]:
        """Calls and child runs, by when they began."""
        below = [
            *((span[0], self._call(call, span)) for call, span in self.calls),
            *((span[0], self._child(child, span)) for child, span in self.children),
        ]
        return [row for _begin, row in sorted(below, key=lambda pair: pair[0])]

    def _call(self, call: ToolCall, span: tuple[datetime, datetime]) -> Row:
        is_open = call.status in OPEN_TOOL_CALLS
        settle = f"{self.settle_url}?id={call.pk}" if is_open and self.settle_url else ""
        known = call.duration_ms is not None
        length = timedelta(milliseconds=call.duration_ms or 0) if known else span[1] - span[0]
        return Row(
            key=call.pk,
            icon="tools",
            name=call.name,
            url=call_url(call.pk),
            status=ToolCallStatus(call.status),
            offset=self.scale.offset(span[0]),
            took=duration(length),
            bars=[self.scale.bar(call.status.lower(), span)],
            settle_url=settle,
        )

    def _child(self, child: Run, span: tuple[datetime, datetime]) -> Row:
        status = run_status(child, now=self.now)
        return Row(
            key=child.pk,
            icon="runs",
            name=child.agent_id or child.pk,
            url=run_url(child.pk),
            status=status,
            offset=self.scale.offset(span[0]),
            took=took(child, now=self.now),
            bars=[self.scale.bar(f"run bar-{status.lower()}", span)],
        )
