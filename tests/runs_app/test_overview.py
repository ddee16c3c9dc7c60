from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from runs_app.management.demo import seed
from runs_app.models import Run
from runs_app.services import overview
from runs_app.services.overview import Day
from runs_app.services.reading import STUCK_AFTER
from runs_app.states import RunStatus
from sessions_app.models import Session
from sessions_app.services.counting import Bounded, count_all
from sessions_app.states import SessionStatus

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="class")
def now(class_db):
    now = timezone.now()
    list(seed(sessions=200, seed=5, now=now))
    return now


def every_run(now):
    return Run.objects.effective().filter(created_at__gte=now - timedelta(days=7))


class TestTheOverview:
    def test_counts_runs_as_lists_of_runs_do(self, now):
        counts = overview.attention(now=now)
        failed = every_run(now).with_status([RunStatus.FAILED], now=now)
        interrupted = every_run(now).with_status([RunStatus.INTERRUPTED], now=now)
        effective = Run.objects.effective()
        stuck = effective.stuck(now=now, since=now - STUCK_AFTER)
        assert counts["failed"].number == failed.count() > 0
        assert counts["interrupted"].number == interrupted.count() > 0
        waiting = effective.with_status([RunStatus.WAITING], now=now)
        assert counts["waiting"].number == waiting.count() > 0
        assert counts["stuck"].number == stuck.count() > 0

    def test_counts_what_has_lapsed_and_nobody_has_settled(self, now):
        before = overview.attention(now=now)["interrupted"].number
        running = Run.objects.filter(status=RunStatus.RUNNING).count()
        later = now + timedelta(hours=3)
        assert overview.attention(now=later)["interrupted"].number == before + running + (
            Run.objects.effective().lapsed(now=later).exclude(status=RunStatus.RUNNING).count()
        )

    def test_counts_sessions_as_lists_of_sessions_do(self, now):
        counts = overview.attention(now=now)
        active = Session.objects.with_status([SessionStatus.ACTIVE], now=now)
        assert counts["unanswered"].number == active.with_open_tool_calls(True).count() > 0
        soon = active.filter(expires_at__lte=now + timedelta(hours=1))
        assert counts["expiring"].number == soon.count() > 0

    @pytest.mark.parametrize("later", [timedelta(0), timedelta(days=2)])
    def test_tells_the_status_that_sessions_have_at_that_moment(self, now, later):
        found = overview.by_status(now=now + later)
        for status in SessionStatus:
            sessions = Session.objects.with_status([status], now=now + later)
            assert found[status] == Bounded(sessions.count())

    def test_sums_up_days(self, now):
        days = overview.days(now=now)
        assert len(days) == overview.CHART_DAYS
        assert days[-1].day == now.astimezone(UTC).date()
        for day in days:
            runs = list(Run.objects.created_on(day.day))
            assert day.total == len(runs)
            assert day.input_tokens == sum(run.input_tokens for run in runs)
            assert day.output_tokens == sum(run.output_tokens for run in runs)
            assert day.runs.get("FAILED", 0) == sum(run.status == "FAILED" for run in runs)
            assert all(run.created_at.astimezone(UTC).date() == day.day for run in runs)

    def test_tells_how_long_runs_took(self, now):
        day = max(overview.days(now=now), key=lambda day: day.total)
        ended = [
            run.ended_at - run.started_at
            for run in Run.objects.created_on(day.day)
            if run.ended_at and run.started_at and run.status != "INTERRUPTED"
        ]
        assert day.median in ended
        assert day.p95 in ended
        assert sum(took <= day.median for took in ended) >= len(ended) / 2
        assert sum(took > day.p95 for took in ended) <= len(ended) * 0.05

    def test_names_the_newest_runs_that_went_wrong(self, now):
        found = list(overview.troubled(now=now, most=4))
        assert len(found) == 4
        assert {run.status for run in found} <= {"FAILED", "INTERRUPTED"}
        assert found == sorted(found, key=lambda run: run.pk, reverse=True)


class TestTheOverviewOfNothing:
    def test_asks_as_often_as_one_of_many(self, django_assert_num_queries):
        now = timezone.now()
        for sessions in (0, 40):
            list(seed(sessions=sessions, seed=5, now=now))
            with django_assert_num_queries(7):
                overview.attention(now=now)
                overview.by_status(now=now)
                overview.days(now=now)
                list(overview.troubled(now=now, most=4))

    def test_is_nothing(self):
        now = datetime(2026, 1, 15, tzinfo=UTC)
        assert set(overview.attention(now=now).values()) == {Bounded(0)}
        assert overview.days(now=now)[0] == Day(datetime(2026, 1, 2, tzinfo=UTC).date())


class TestCounting:
    def test_stops_at_its_limit(self, now):
        sessions = Session.objects.all()
        found = count_all({"few": (sessions, 199), "all": (sessions, 200), "one": (sessions, 1)})
        assert found == {"few": Bounded(199, True), "all": Bounded(200), "one": Bounded(1, True)}

    def test_adds_up(self):
        assert Bounded(3) + Bounded(4, True) == Bounded(7, True)
