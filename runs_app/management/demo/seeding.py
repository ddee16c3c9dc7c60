"""Which sessions there are, when, and what became of them."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import Group, User

from runs_app.states import RunStatus

from .exchanges import Exchange, make_exchange
from .rows import Ids, Rows
from .scenarios import SCENARIOS
from .story import Story

DAYS = 30
ACCOUNTS = ("demo-support", "demo-engineering", "demo-china")
_VARIANTS = 40
_BATCH = 1_000
_WORKING_HOURS, _WEEKEND = range(6, 19), (5, 6)
_TIMEOUTS = (3_600, 86_400, 7 * 86_400)
# How older sessions end, with their weights; the others expired, if they have a timeout, or go on.
_DELETED, _CLOSED, _INTERRUPTED, _LEFT = range(4)
_ENDS = {_DELETED: 2, _CLOSED: 38, _INTERRUPTED: 3, _LEFT: 57}
# Of finished tasks.
_OUTCOMES = {
    RunStatus.COMPLETED: 84,
    RunStatus.FAILED: 9,
    RunStatus.CANCELLED: 7,
}
# What goes on right now, one after the other.
_GOING_ON = (
    RunStatus.RUNNING,
    RunStatus.WAITING,
    RunStatus.PENDING,
    RunStatus.COMPLETED,
    RunStatus.INTERRUPTED,
    RunStatus.RUNNING,
    RunStatus.FAILED,
)


def seed(*, sessions: int, seed: int, now: datetime) -> Iterator[int]:
    """Write so many sessions of the days before ``now``; yields how many there are so far.

    Past the managers, which lock and ask for each message: 200,000 sessions would take hours.
    """
    rng = random.Random(seed)  # noqa: S311  nothing secret, and the same for a seed
    ids, rows = Ids(rng), Rows()
    accounts = [_account(name) for name in ACCOUNTS]
    exchanges = [make_exchange(each, rng) for each in SCENARIOS for _ in range(_VARIANTS)]
    going_on = min(sessions, max(8, sessions // 200))
    # By dice of their own: which are thrown again depends on the day, and no story should.
    moments = _moments(sessions - going_on, rng=random.Random(seed), now=now)  # noqa: S311
    for number in range(sessions):
        exchange = rng.choice(exchanges)
        account = accounts[SCENARIOS.index(exchange.scenario) % len(accounts)]
        if number < len(moments):
            of_agent = [each for each in exchanges if each.scenario is exchange.scenario]
            story = _earlier(
                exchange, of_agent, account=account, at=moments[number], ids=ids, rng=rng, now=now
            )
        else:
            story = _going_on(exchange, account=account, number=number, ids=ids, rng=rng, now=now)
        story.hand_over(rows)
        if (number + 1) % _BATCH == 0 or number + 1 == sessions:
            rows.store()
            yield number + 1


def _account(name: str) -> User:
    account, created = User.objects.get_or_create(username=name)
    if created:
        account.set_unusable_password()
        account.save()
        account.groups.add(Group.objects.get(name="agents"))
    return account


def _moments(count: int, *, rng: random.Random, now: datetime) -> list[datetime]:
    """Beginnings in order: more by day than by night, few on weekends."""
    found: list[datetime] = []
    while len(found) < count:
        # Two hours are more than all tasks of one session take.
        at = now - timedelta(seconds=rng.uniform(2 * 3_600, DAYS * 86_400))
        by_day = 1 if at.hour in _WORKING_HOURS else 0.25
        if rng.random() < by_day * (0.4 if at.weekday() in _WEEKEND else 1):
            found.append(at)
    return sorted(found)


def _earlier(
    first: Exchange,
    others: Sequence[Exchange],
    *,
    account: User,
    at: datetime,
    ids: Ids,
    rng: random.Random,
    now: datetime,
) -> Story:
    timeout = rng.choice((None, *_TIMEOUTS))
    story = Story(account=account, exchange=first, at=at, timeout=timeout, ids=ids, rng=rng)
    outcomes = rng.choices(list(_OUTCOMES), list(_OUTCOMES.values()), k=rng.choice((1, 1, 2, 3)))
    for turn, status in enumerate(outcomes):
        story.run(
            first if turn == 0 else rng.choice(others), status, takes=_length(rng), stuck=False
        )
        story.wait(timedelta(seconds=rng.uniform(5, 300)))
    _finish(story, first, timeout=timeout, rng=rng, now=now)
    return story


def _finish(
    story: Story, exchange: Exchange, *, timeout: int | None, rng: random.Random, now: datetime
) -> None:
    """How an older session ended, if it did."""
    (end,) = rng.choices(list(_ENDS), list(_ENDS.values()))
    if end == _DELETED:
        story.delete()
    elif end == _CLOSED:
        story.close()
    else:
        if end == _INTERRUPTED:
            story.run(exchange, RunStatus.INTERRUPTED, takes=_length(rng), stuck=False)
        lapses = story.session.last_activity_at + timedelta(seconds=timeout or 0)
        if timeout is not None and lapses <= now:
            story.expire()
        else:
            story.live()


def _going_on(
    exchange: Exchange, *, account: User, number: int, ids: Ids, rng: random.Random, now: datetime
) -> Story:
    """A session that somebody works in now: its last sign of life is less than a lease ago."""
    status = _GOING_ON[number % len(_GOING_ON)]
    stuck = status == RunStatus.RUNNING and number % 3 == 0
    takes = timedelta(seconds=rng.uniform(20, 60))
    earlier = (
        timedelta(minutes=rng.uniform(12, 80)) if stuck else timedelta(seconds=rng.uniform(1, 20))
    )
    if status in {RunStatus.WAITING, RunStatus.COMPLETED, RunStatus.INTERRUPTED, RunStatus.FAILED}:
        earlier = timedelta(minutes=rng.uniform(5, 50))
    at = now - earlier - takes
    timeout = rng.choice((3_600, 86_400))
    story = Story(account=account, exchange=exchange, at=at, timeout=timeout, ids=ids, rng=rng)
    story.run(exchange, status, takes=takes, stuck=stuck)
    story.live()
    return story


def _length(rng: random.Random) -> timedelta:
    """Most tasks take seconds, some many minutes."""
    return timedelta(seconds=min(1_200, rng.lognormvariate(3.2, 0.9)))
