"""Working memory over the API: replaced, merged, compared, and every version of it."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import IdempotencyRecord, Session
from tests.api_client import APIClient
from tests.factories import make_messages, make_run

EMPTY = {
    "goal": "",
    "plan": [],
    "completed": [],
    "errors": [],
    "important_files": [],
    "next_action": "",
    "extra": {},
}


@pytest.fixture
def path(session: Session) -> str:
    return f"/sessions/{session.session_id}/working-memory"


def document(answer: Any) -> dict[str, Any]:
    return {key: answer.json()[key] for key in EMPTY}


class TestReadingWorkingMemory:
    def test_begins_empty_at_version_0(self, api: APIClient, path: str, session: Session) -> None:
        answer = api.get(path)
        owned = {"object": "working_memory", "session_id": session.session_id, "version": 0}
        assert answer.json() == {**owned, **EMPTY}
        assert answer.headers["ETag"] == '"0"'

    def test_answers_304_to_who_holds_it(self, api: APIClient, path: str) -> None:
        api.put(path, {"goal": "G"})
        assert api.get(path, If_None_Match='"1"').status_code == 304
        assert api.get(path, If_None_Match='"0"').status_code == 200


class TestReplacingWorkingMemory:
    def test_empties_what_is_absent(self, api: APIClient, path: str) -> None:
        api.put(path, {"goal": "G", "plan": ["a"]})
        answer = api.put(path, {"goal": None, "next_action": "N"})
        assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
        assert document(answer) == {**EMPTY, "next_action": "N"}
        assert document(api.get(path)) == document(answer)

    def test_takes_back_what_was_read(self, api: APIClient, path: str) -> None:
        read = api.put(path, {"goal": "G", "extra": {"b": 1, "a": 10**30}})
        again = api.put(path, read.json(), If_Match=read.headers["ETag"])
        assert document(again) == document(read)
        assert list(again.json()["extra"]) == ["b", "a"]

    def test_leaves_the_rest_of_the_session(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        """Report CON-08."""
        whole = path.removesuffix("/working-memory")
        api.patch(whole, {"idle_timeout_seconds": 3600, "title": "T"})
        api.put(path, {"goal": "G"})
        body = api.get(whole).json()
        assert (body["idle_timeout_seconds"], body["title"]) == (3600, "T")
        assert (body["working_memory"]["goal"], body["working_memory_version"]) == ("G", 1)


class TestPatchingWorkingMemory:
    @pytest.mark.parametrize(
        ("patch", "expected"),
        [
            ({"plan": ["c"]}, {"goal": "G", "plan": ["c"], "extra": {"a": {"x": 1}}}),
            ({"goal": None}, {"plan": ["a", "b"], "extra": {"a": {"x": 1}}}),
            ({"extra": None}, {"goal": "G", "plan": ["a", "b"]}),
            (
                {"extra": {"a": {"y": 2}}},
                {"goal": "G", "plan": ["a", "b"], "extra": {"a": {"x": 1, "y": 2}}},
            ),
            ({"extra": {"a": None}}, {"goal": "G", "plan": ["a", "b"]}),
            ({}, {"goal": "G", "plan": ["a", "b"], "extra": {"a": {"x": 1}}}),
        ],
    )
    def test_merges(self, api: APIClient, path: str, patch: Any, expected: Any) -> None:
        api.put(path, {"goal": "G", "plan": ["a", "b"], "extra": {"a": {"x": 1}}})
        assert document(api.patch(path, patch)) == {**EMPTY, **expected}

    def test_takes_a_merge_patch_by_its_media_type(self, api: APIClient, path: str) -> None:
        answer = api.patch(path, {"goal": "G"}, Content_Type="application/merge-patch+json")
        assert answer.json()["goal"] == "G"

    def test_names_its_run(self, api: APIClient, path: str, session: Session) -> None:
        run = make_run(session=session)
        api.patch(path, {"goal": "G"}, {"run_id": run.run_id, "attempt": 1})
        (revision,) = api.get(f"{path}/revisions").json()["data"]
        assert revision["run_id"] == run.run_id
        refused = api.patch(path, {"goal": "H"}, {"run_id": run.run_id, "attempt": 0})
        assert (refused.status_code, refused.json()["code"]) == (409, "run_superseded")
        assert api.put(path, {}, {"run_id": "run_of_nobody"}).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
class TestWritingWorkingMemory:
    def test_compares_its_own_version(self, api: APIClient, path: str, method: str) -> None:
        api.patch(path.removesuffix("/working-memory"), {"title": "T"})
        assert api.send(method, path, {"goal": "1"}, If_Match='"0"').status_code == 200
        refused = api.send(method, path, {"goal": "2"}, If_Match='"0"')
        assert (refused.status_code, refused.json()["code"]) == (412, "version_mismatch")
        assert refused.json()["version"] == 1
        assert api.send(method, path, {"goal": "3"}, If_Match="*").status_code == 200

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"unknown": 1}, "/unknown"),
            ({"a/b~": 1}, "/a~1b~0"),
            ({"goal": 5}, "/goal"),
            ({"goal": ["a"]}, "/goal"),
            ({"plan": "a"}, "/plan"),
            ({"plan": [1]}, "/plan"),
            ({"errors": [None]}, "/errors"),
            ({"extra": []}, "/extra"),
            ({"next_action": True}, "/next_action"),
            ([], ""),
            ("x", ""),
            (None, None),
        ],
    )
    def test_refuses_what_is_no_document(
        self, api: APIClient, path: str, method: str, body: Any, pointer: str | None
    ) -> None:
        raw = b"null" if body is None else body
        refused = api.send(method, path, raw)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
        if pointer is not None:
            assert refused.json()["errors"][0]["pointer"] == pointer

    def test_is_done_once_per_key_and_kept_small(
        self, api: APIClient, path: str, method: str
    ) -> None:
        first = api.send(method, path, {"goal": "secret"}, Idempotency_Key="k")
        api.put(path, {"goal": "later"})
        again = api.send(method, path, {"goal": "secret"}, Idempotency_Key="k")
        assert again.json() == first.json()
        assert again.headers["ETag"] == first.headers["ETag"]
        assert again.headers["Idempotency-Replayed"] == "true"
        assert "secret" not in repr(IdempotencyRecord.objects.get().answer)

    def test_is_answered_410_after_the_deletion(
        self, api: APIClient, path: str, method: str
    ) -> None:
        api.send(method, path, {"goal": "G"}, Idempotency_Key="k")
        api.delete(path.removesuffix("/working-memory"))
        assert api.send(method, path, {"goal": "G"}, Idempotency_Key="k").status_code == 410


class TestARevision:
    def test_says_who_and_when_and_after_what(
        self, api: APIClient, path: str, session: Session
    ) -> None:
        api.put(path, {"goal": "1"})
        make_messages(session=session, count=2)
        api.put(path, {"goal": "2"})
        newest, oldest = api.get(f"{path}/revisions").json()["data"]
        assert [newest["version"], oldest["version"]] == [2, 1]
        assert [newest["sequence"], oldest["sequence"]] == [2, 0]
        assert newest["actor"] == {"type": "account", "id": "agent"}
        assert newest["session_version"] == 4
        assert "working_memory" not in newest

    def test_is_read_whole_by_its_version(self, api: APIClient, path: str) -> None:
        api.put(path, {"goal": "1"})
        api.put(path, {"goal": "2"})
        revision = api.get(f"{path}/revisions/1").json()
        assert revision["working_memory"] == {**EMPTY, "goal": "1"}

    @pytest.mark.parametrize("name", ["0", "2", "-1", "01", "x", "9" * 19, "9" * 40])
    def test_answers_404_to_what_is_no_version(self, api: APIClient, path: str, name: str) -> None:
        api.put(path, {"goal": "1"})
        assert api.get(f"{path}/revisions/{name}").status_code == 404

    def test_list_costs_two_queries_and_reads_no_document(self, api: APIClient, path: str) -> None:
        for number in range(5):
            api.put(path, {"goal": str(number)})
        with CaptureQueriesContext(connection) as queries:
            page = api.get(f"{path}/revisions", {"limit": 2}).json()
        assert [each["version"] for each in page["data"]] == [5, 4]
        assert len(queries) == 2 + 2  # authentication, then the session and the page
        assert '"memory"' not in queries[-1]["sql"]
        rest = api.get(f"{path}/revisions", {"limit": 9, "cursor": page["next_cursor"]}).json()
        assert [each["version"] for each in rest["data"]] == [3, 2, 1]


class TestEvents:
    def test_are_listed_oldest_first(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.session_id}"
        make_run(session=session)
        api.post(f"{path}/close", {"reason": "done"})
        events = api.get(f"{path}/events").json()["data"]
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
        assert events[0]["from_status"] is None
        assert (events[0]["to_status"], events[-1]["to_status"]) == ("ACTIVE", "CLOSED")
        assert {event["subject"] for event in events} == {"session", "run"}
        assert events[0]["reason"] is None

    def test_are_walked_in_pages(self, api: APIClient, session: Session) -> None:
        path = f"/sessions/{session.session_id}/events"
        for _ in range(3):
            make_run(session=session, if_active="cancel")
        seen: list[int] = []
        query: dict[str, Any] = {"limit": 2}
        while True:
            page = api.get(path, query).json()
            seen += [event["sequence"] for event in page["data"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) > 6
