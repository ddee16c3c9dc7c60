"""Lists of runs over the API, of one session and of all."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from time_machine import Traveller

from runs_app.models import Run
from runs_app.states import RunStatus
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.domain import NOON, later
from tests.factories import add_messages, make_account, make_run, make_session

USER = {"role": "user", "content": "Hello"}


def ids(answer: Any) -> list[str]:
    return [run["run_id"] for run in answer.json()["data"]]


def pages(api: APIClient, path: str, link: str = "next_cursor", **query: Any) -> list[list[str]]:
    """The ids, page by page."""
    found = []
    while True:
        answer = api.get(path, query)
        found.append(ids(answer))
        if answer.json()[link] is None:
            return found
        query["cursor"] = answer.json()[link]


def queued(session: Session, count: int) -> list[str]:
    """The ids of so many queued runs, newest first."""
    return [make_run(session=session, start=False).pk for _ in range(count)][::-1]


class TestASessionsRuns:
    def test_are_its_own_newest_first(self, api: APIClient, session: Session, agent: User) -> None:
        make_run(session=make_session(account=agent))
        mine = queued(session, 3)
        answer = api.get(f"/sessions/{session.pk}/runs")
        assert ids(answer) == mine
        assert answer.json()["next_cursor"] is answer.json()["previous_cursor"] is None
        assert answer.json()["data"][0] == api.get(f"/runs/{mine[0]}").json()

    def test_are_paged(self, api: APIClient, session: Session) -> None:
        mine = queued(session, 5)
        found = pages(api, f"/sessions/{session.pk}/runs", limit=2)
        assert found == [mine[:2], mine[2:4], mine[4:]]

    def test_may_be_none(self, api: APIClient, session: Session) -> None:
        assert ids(api.get(f"/sessions/{session.pk}/runs")) == []

    @pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"cursor": "x"}, {"all": 1}])
    def test_refuse_an_odd_query(
        self, api: APIClient, session: Session, query: dict[str, Any]
    ) -> None:
        assert api.get(f"/sessions/{session.pk}/runs", query).status_code == 400


class TestAllRuns:
    def test_are_those_of_every_session_of_the_account(
        self, api: APIClient, session: Session, agent: User
    ) -> None:
        make_run(session=make_session(account=make_account("stranger")))
        first = make_run(session=session)
        second = make_run(session=make_session(account=agent))
        assert ids(api.get("/runs")) == [second.pk, first.pk]

    def test_are_paged_both_ways_by_their_id(self, api: APIClient, session: Session) -> None:
        mine = queued(session, 5)
        found = pages(api, "/runs", limit=2)
        assert found == [mine[:2], mine[2:4], mine[4:]]
        cursor = api.get("/runs", {"limit": 2}).json()["next_cursor"]
        cursor = api.get("/runs", {"limit": 2, "cursor": cursor}).json()["next_cursor"]
        back = pages(api, "/runs", link="previous_cursor", limit=2, cursor=cursor)
        assert back == [mine[4:], mine[2:4], mine[:2]]

    def test_leave_out_those_of_a_deleted_session(self, api: APIClient, session: Session) -> None:
        make_run(session=session)
        api.delete(f"/sessions/{session.pk}")
        assert ids(api.get("/runs")) == []

    def test_are_found_by_agent(self, api: APIClient, session: Session) -> None:
        wanted = make_run(session=session, agent_id="a")
        make_run(session=session, agent_id="b", start=False)
        assert ids(api.get("/runs", {"agent_id": "a"})) == [wanted.pk]
        assert ids(api.get("/runs", {"agent_id": "A"})) == []
        assert ids(api.get("/runs", {"agent_id": "\x00"})) == []

    def test_are_found_by_when_they_started(
        self, api: APIClient, agent: User, session: Session
    ) -> None:
        early, late = (
            make_run(session=make_session(account=agent), now=later(seconds), lease_seconds=3600)
            for seconds in (-60, -30)
        )
        make_run(session=session, start=False)
        asked = {"started_after": "2026-03-01T11:59:00Z"}
        assert ids(api.get("/runs", asked)) == [late.pk]
        assert ids(api.get("/runs", {"started_before": "2026-03-01T11:59:30Z"})) == [early.pk]
        both = asked | {"started_before": "2026-03-01T13:59:31+02:00"}
        assert ids(api.get("/runs", both)) == [late.pk]

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            ({"status": "running"}, "/status"),
            ({"status": ""}, "/status"),
            ({"stuck": "1"}, "/stuck"),
            ({"started_after": "2026-03-01"}, "/started_after"),
            ({"started_before": "2026-03-01T12:00:00"}, "/started_before"),
            ({"agent_id": "x" * 256}, "/agent_id"),
            ({"session_id": "sess_1"}, "/session_id"),
        ],
    )
    def test_refuse_an_odd_filter(
        self, api: APIClient, query: dict[str, Any], pointer: str
    ) -> None:
        answer = api.get("/runs", query)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == pointer

    def test_cost_the_same_for_two_and_for_twenty(
        self, api: APIClient, session: Session, django_assert_num_queries: Any
    ) -> None:
        for count in (2, 18):
            for run_id in queued(session, count):
                add_messages(USER, session=session, run_id=run_id)
            with django_assert_num_queries(4):  # token, permissions, sizes, rows
                assert api.get("/runs").status_code == 200

    def test_are_paged_by_their_bytes_too(
        self, api: APIClient, session: Session, settings: Any
    ) -> None:
        """What a run ended with counts as much as what it began with."""
        settings.MAX_PAGE_BYTES = 5000
        mine: list[str] = []
        for _ in range(4):
            run = make_run(session=session, input="x" * 1000)
            api.post(f"/runs/{run.pk}/complete", {"output": "x" * 1000})
            mine.insert(0, run.pk)
        assert pages(api, "/runs") == [mine[:2], mine[2:]]


class TestTheStatusFilter:
    @pytest.fixture
    def runs(self, api: APIClient, agent: User) -> dict[str, str]:
        """One run of each status; LAPSED is one that nobody has settled."""
        made = {}
        for status in (*RunStatus.values, "LAPSED"):
            session = make_session(account=agent)
            made[status] = make_run(session=session, start=status != "PENDING").pk
        for status, move, body in (
            ("WAITING", "wait", {"reason": "x"}),
            ("COMPLETED", "complete", {}),
            ("FAILED", "fail", {"error": {"type": "t", "message": "m"}}),
            ("CANCELLED", "cancel", {}),
        ):
            assert api.post(f"/runs/{made[status]}/{move}", body).status_code == 200
        Run.objects.filter(pk=made["LAPSED"]).update(lease_expires_at=NOON)
        Session.objects.filter(active_run_id=made["LAPSED"]).update(active_run_deadline=NOON)
        interrupted = Run.objects.get(pk=made["INTERRUPTED"]).session_id
        api.post(f"/sessions/{interrupted}/expire")
        return made

    @pytest.mark.parametrize(
        "status", ["PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "CANCELLED"]
    )
    def test_finds_by_status(self, api: APIClient, runs: dict[str, str], status: str) -> None:
        assert ids(api.get("/runs", {"status": status})) == [runs[status]]

    def test_finds_what_lapsed_among_the_interrupted(
        self, api: APIClient, runs: dict[str, str]
    ) -> None:
        found = ids(api.get("/runs", {"status": "INTERRUPTED"}))
        assert set(found) == {runs["INTERRUPTED"], runs["LAPSED"]}

    def test_takes_a_comma_list(self, api: APIClient, runs: dict[str, str]) -> None:
        found = ids(api.get("/runs", {"status": "FAILED,PENDING"}))
        assert set(found) == {runs["FAILED"], runs["PENDING"]}

    def test_agrees_with_what_each_run_says(self, api: APIClient, runs: dict[str, str]) -> None:
        for run in api.get("/runs").json()["data"]:
            assert run["run_id"] in ids(api.get("/runs", {"status": run["status"]}))


class TestStuckRuns:
    def test_are_unfinished_and_silent_for_ten_minutes(
        self, api: APIClient, agent: User, clock: Traveller
    ) -> None:
        silent, waiting, beating, done, short = (
            make_run(session=make_session(account=agent), lease_seconds=seconds)
            for seconds in (3600, 3600, 3600, 3600, 60)
        )
        pending = make_run(session=make_session(account=agent), start=False)
        api.post(f"/runs/{waiting.pk}/wait", {"reason": "approval"})
        clock.move_to(later(599))
        assert ids(api.get("/runs", {"stuck": "true"})) == []
        api.post(f"/runs/{beating.pk}/heartbeat")
        api.post(f"/runs/{done.pk}/complete")
        clock.move_to(later(600))
        stuck = ids(api.get("/runs", {"stuck": "true"}))
        assert stuck == [pending.pk, waiting.pk, silent.pk]
        assert len(ids(api.get("/runs", {"stuck": "false"}))) == 6
        assert api.get(f"/runs/{short.pk}").json()["status"] == "INTERRUPTED"

    def test_are_kept_from_it_by_a_message(
        self, api: APIClient, session: Session, clock: Traveller
    ) -> None:
        run = make_run(session=session, lease_seconds=3600)
        clock.move_to(later(500))
        add_messages(USER, session=session, run_id=run.pk)
        clock.move_to(later(700))
        assert ids(api.get("/runs", {"stuck": "true"})) == []
