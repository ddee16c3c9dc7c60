"""A month of sessions, and a few of every kind, for pictures; made beside the server."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from runs_app.management import demo
from runs_app.models import Run
from runs_app.services import NewRun, RunManager
from sessions_app.models import BulkMove, Session, ToolCall
from sessions_app.services import Actor, NewSession, SessionManager, bulk
from sessions_app.services.locking import write_transaction
from sessions_app.states import SessionStatus
from tests.browser.demo_run import seed_runs
from tests.browser.demo_transcript import converse

SESSIONS: list[tuple[str | None, str, str | None]] = [
    ("Refund for order 4711", "support-agent", "u-1029"),
    ("修复无法启动的项目", "repair-agent", "王小明"),
    (
        "Quarterly report: revenue by region and product line, with the corrections of June",
        "analyst",
        "maria.santos@example.org",
    ),
    ("Migrate the billing service to PostgreSQL 16", "code-agent", "u-7"),
    (None, "code-agent", None),
    ("客户投诉: 包裹在运输途中损坏, 要求退款并重新发货", "support-agent", "u-88"),
    ("Plan a trip to Lisbon", "travel", "u-5521"),
    ("Translate the handbook", "translator", "u-3"),
    ("Nightly data check", "cron", None),
    ("Find the memory leak in the image worker", "code-agent", "u-7"),
]
TIMEOUTS = (3600, None, 86_400)


def seed(password: str) -> None:
    """Make it, and print what addresses need."""
    admin = User.objects.create_superuser("admin", "admin@example.org", password)
    for name, group in (("lin", "support"), ("maria", "operators"), ("chen", "administrators")):
        # Hashed once for all: it takes its time.
        person = User.objects.create(username=name, is_staff=True, password=admin.password)
        person.groups.add(Group.objects.get(name=group))
    actor = Actor.account(User.objects.get(username="agent"))
    made = []
    for number in range(len(SESSIONS)):
        # Told at once: the server's sweep runs beside this, and would end what is long past.
        with write_transaction():
            made.append(_session(actor, number))
    # Last: the server's sweep runs beside this, and would end what is being told above.
    list(demo.seed(sessions=400, seed=1, now=timezone.now()))
    session, run = made[0]
    call = ToolCall.objects.filter(session=session)[0]
    runs = seed_runs(actor)
    print(f"session={session.pk}\nrun={run.pk}\ncall={call.pk}")  # noqa: T201
    print(f"failed_run={runs['failed'].pk}\nlive_run={runs['live'].pk}")  # noqa: T201
    print(f"live_session={runs['live'].session_id}")  # noqa: T201
    print(f"talk={converse(actor)}")  # noqa: T201
    print(f"bulk={_close_some('support-agent', seconds=60).pk}")  # noqa: T201
    live = _close_some("code-agent", seconds=0)
    # So that the server's sweep lets it be: it takes the driver for alive.
    BulkMove.objects.filter(pk=live.pk).update(worked_at=timezone.now() + timedelta(days=1))
    print(f"live_bulk={live.pk}")  # noqa: T201


def _close_some(agent_id: str, *, seconds: float) -> BulkMove:
    """Of many sessions at once, some are closed, and some were closed before."""
    some = Session.objects.filter(agent_id=agent_id).exclude(status="DELETED")
    move = bulk.draft(
        actor=Actor.operator(User.objects.get(username="maria")),
        to=SessionStatus.CLOSED,
        session_ids=list(some.order_by("-pk").values_list("pk", flat=True)[:40]),
    )
    bulk.confirm(move, reason="The shop has moved to another system")
    bulk.step(move, seconds=seconds)
    return move


def _session(actor: Actor, number: int) -> tuple[Session, Run]:
    title, agent, user = SESSIONS[number]
    at = timezone.now() - timedelta(minutes=7 * (len(SESSIONS) - number) ** 2)
    new = NewSession(
        title=title,
        agent_id=agent,
        user_id=user,
        metadata={"tier": "gold", "number": number},
        working_memory={"goal": title or "Tidy up", "plan": ["Look", "Think", "Act"]},
        idle_timeout_seconds=TIMEOUTS[number % len(TIMEOUTS)],
    )
    session, _events = SessionManager(actor).create(new, now=at)
    asked = NewRun(input={"task": title}, agent_id=agent, model="gpt-5.1-mini")
    run = RunManager(actor).create(session_id=session.pk, new=asked, now=at)
    _talk(actor, session, run, answered=number % 4 != 3, at=at)
    _end(actor, run, number, now=at + timedelta(seconds=30))
    if number == 6:
        reason = "The customer is content"
        SessionManager(actor).close(
            session_id=session.pk, reason=reason, now=at + timedelta(minutes=1)
        )
    return session, run


def _talk(actor: Actor, session: Session, run: Run, *, answered: bool, at: datetime) -> None:
    function = {"name": "search_orders", "arguments": '{"query": "4711", "limit": 5}'}
    call = {"id": "call_1", "type": "function", "function": function}
    asking: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful assistant."},
        {"role": "user", "content": session.title or "Please tidy up."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    answer: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": "call_1", "content": '{"orders": [{"id": 4711}]}'},
        {
            "role": "assistant",
            "content": "Done: **one** order found.",
            "usage": {"input_tokens": 1200, "output_tokens": 310},
        },
    ]
    manager = SessionManager(actor)
    manager.append(session_id=session.pk, run_id=run.pk, messages=asking, now=at)
    if answered:
        after = at + timedelta(seconds=9)
        manager.append(session_id=session.pk, run_id=run.pk, messages=answer, now=after)


def _end(actor: Actor, run: Run, number: int, *, now: datetime) -> None:
    manager = RunManager(actor)
    match number % 5:
        case 0:
            manager.complete(run_id=run.pk, output={"answer": "Refunded."}, now=now)
        case 1:
            error = {"type": "timeout", "message": "The tool took too long."}
            manager.fail(run_id=run.pk, error=error, now=now)
        case 2:
            manager.wait(run_id=run.pk, reason="for approval", now=now)
