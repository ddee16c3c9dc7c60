"""What the endpoint answers; how streams go on: `tests/races/test_streams.py`."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory

from runs_app.api.stream import StreamView, _Following
from runs_app.services.streams import Ended, open_streams
from sessions_app.models import AccessToken, Session
from sessions_app.services import Actor, SessionManager
from sessions_app.services.changes import Place
from tests.api_client import APIClient
from tests.domain import calling, user
from tests.factories import add_messages, make_account, make_messages, make_run, make_token


def events_in(page: bytes) -> list[dict[str, Any]]:
    """A page of server-sent events, as a client reads it (WHATWG HTML, section 9.2)."""
    blocks = page.decode().split("\n\n")
    assert blocks.pop() == ""
    found = []
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert list(fields) == ["id", "event", "data"]
        found.append({**fields, "data": json.loads(fields["data"])})
    return found


@pytest.fixture
def follow(agent: User, session: Session) -> Any:
    token = make_token(account=agent)

    return lambda *after: following(token, session, *after)


def following(token: str, session: Session, *after: int) -> _Following:
    """What a request of this token is served from."""
    view = StreamView()
    asked = RequestFactory().get("/", headers={"Authorization": f"Bearer {token}"})
    place = Place(*after) if after else Place(0, 0)
    return _Following(view, view.initialize_request(asked), session.pk, place)


class TestTheHead:
    def test_says_what_follows(self, api: APIClient, session: Session) -> None:
        for method in ("GET", "HEAD"):
            answer = api.send(method, f"/sessions/{session.pk}/stream", Accept="application/json")
            assert answer.status_code == 200
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert answer.headers["Cache-Control"] == "no-cache"
            assert answer.headers["X-Accel-Buffering"] == "no"
            assert "Content-Length" not in answer.headers

    def test_of_a_session_that_is_over_is_the_same(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.pk}"
        api.post(f"{path}/close")
        assert api.get(f"{path}/stream").status_code == 200
        api.delete(path)
        assert api.get(f"{path}/stream").status_code == 410

    @pytest.mark.parametrize("given", ["", "0", "1", "1.0", "1.999999999999999999", "0.0"])
    def test_takes_what_was_given_out(self, api: APIClient, session: Session, given: str) -> None:
        answer = api.get(f"/sessions/{session.pk}/stream", Last_Event_ID=given)
        assert answer.status_code == 200

    @pytest.mark.parametrize("given", ["x", "-1", "1.", ".1", "1.0.0", "2.0", "٣", "1" * 30, "1 "])
    def test_refuses_what_was_not(self, api: APIClient, session: Session, given: str) -> None:
        answer = api.get(f"/sessions/{session.pk}/stream", Last_Event_ID=given)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == "/Last-Event-ID"

    def test_says_when_there_are_too_many(
        self, api: APIClient, session: Session, settings: Any
    ) -> None:
        settings.MAX_STREAMS = 1
        held = open_streams.open(None)  # type: ignore[arg-type]
        answer = api.get(f"/sessions/{session.pk}/stream")
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        assert answer.headers["Retry-After"] == "5"
        held.close()
        assert api.get(f"/sessions/{session.pk}/stream").status_code == 200


class TestAPage:
    def test_is_events_whose_ids_go_on(self, follow: Any, session: Session) -> None:
        add_messages(user("line\r\n\u2028two"), calling("a"), session=session)
        make_run(session=session)
        page = follow().next_page()
        events = events_in(page.content)
        assert page.version == 3
        assert [(each["id"], each["event"]) for each in events] == [
            ("1.0", "session"),
            ("2.0", "message"),
            ("2.1", "message"),
            ("3.0", "run"),
            ("3.1", "run"),
        ]
        for each in events:
            data = each["data"]
            assert f"{data['version']}.{data['index']}" == each["id"]
            assert data["object"] == "change"
            assert data[each["event"]]["object"] == each["event"]
        assert events[1]["data"]["message"]["content"] == "line\r\n\u2028two"
        (call,) = events[2]["data"]["tool_calls"]
        assert call["status"] == "PENDING"
        assert not {"arguments", "result"} & set(call)

    def test_shows_what_the_objects_own_endpoints_show(
        self, api: APIClient, follow: Any, session: Session
    ) -> None:
        path = f"/sessions/{session.pk}"
        make_messages(session=session)
        run = make_run(session=session)
        call = api.post(f"{path}/tool-calls", {"name": "ls", "arguments": {"a": [1, None]}}).json()
        api.put(f"{path}/working-memory", {"goal": "g"})
        events = {each["event"]: each["data"] for each in events_in(follow().next_page().content)}
        assert events["message"]["message"] == api.get(f"{path}/messages/1").json()
        assert events["run"]["run"] == api.get(f"/runs/{run.pk}").json()
        assert events["tool_call"]["tool_call"] == api.get(f"/tool-calls/{call['id']}").json()
        memory = events["working_memory"]["working_memory"]
        assert memory == api.get(f"{path}/working-memory/revisions/1").json()
        (listed,) = api.get("/sessions").json()["data"]
        assert events["session"]["session"] == listed

    def test_is_one_of_many(self, follow: Any, session: Session) -> None:
        make_messages(session=session, count=250)
        reader = follow()
        ids: list[str] = []
        versions: list[int | None] = []
        while content := (page := reader.next_page()).content:
            ids += [each["id"] for each in events_in(content)]
            versions.append(page.version)
        assert ids == ["1.0", *[f"2.{number}" for number in range(250)]]
        assert versions == [None, None, 2]

    def test_begins_after_the_place_that_was_named(self, follow: Any, session: Session) -> None:
        make_messages(session=session, count=3)
        events = events_in(follow(2, 1).next_page().content)
        assert [each["id"] for each in events] == ["2.2"]


class TestTheRightToRead:
    def test_is_asked_for_at_each_page(self, agent: User, follow: Any, session: Session) -> None:
        reader = follow()
        assert reader.next_page().content
        AccessToken.objects.filter(user=agent).delete()
        with pytest.raises(Ended, match="not_authenticated"):
            reader.next_page()

    def test_ends_with_the_permission(self, agent: User, follow: Any) -> None:
        agent.groups.clear()
        with pytest.raises(Ended, match="permission_denied"):
            follow().next_page()

    def test_ends_with_the_session(self, agent: User, follow: Any, session: Session) -> None:
        reader = follow()
        SessionManager(Actor.account(agent)).delete(session_id=session.pk)
        with pytest.raises(Ended, match="session_deleted"):
            reader.next_page()

    def test_of_an_auditor_ends_with_its_own_permission(self, session: Session) -> None:
        account = make_account("auditor", permissions=["view_all_sessions"])
        reader = following(make_token(account=account), session)
        assert reader.next_page().content
        account.user_permissions.clear()
        with pytest.raises(Ended, match="not_found"):
            reader.next_page()
