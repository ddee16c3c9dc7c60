"""Many writers to one session, and many requests that want the same thing."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from tests.races.load import Answer, Client, Write, together


def append(client: Client, session_id: str, content: str) -> Answer:
    message = {"role": "user", "content": content, "usage": {"input_tokens": 3, "output_tokens": 1}}
    return client.request("POST", f"/sessions/{session_id}/messages", message)


class TestOneSession:
    """Reports CON-01 and LOCK-01."""

    @pytest.mark.parametrize("each", [10, pytest.param(100, marks=pytest.mark.soak)])
    def test_twenty_threads_append(self, client, clients, each):
        session_id = client.new_session()

        def write(number: int) -> list[Answer]:
            texts = [f"{number} {count}" for count in range(each)]
            return [append(clients[number], session_id, text) for text in texts]

        answers = list(itertools.chain(*together([partial(write, n) for n in range(20)])))
        assert Counter(answer.status for answer in answers) == {201: 20 * each}
        self._assert_stored(client, session_id, writers=20, each=each)

    @pytest.mark.parametrize("each", [25, pytest.param(250, marks=pytest.mark.soak)])
    @pytest.mark.usefixtures("sweeping")
    def test_eight_threads_append_while_two_read_and_a_sweep_runs(self, client, clients, each):
        session_id = client.new_session(idle_timeout_seconds=3600)
        writing = [True]

        def write(number: int) -> list[Answer]:
            return [append(clients[number], session_id, f"{number} {n}") for n in range(each)]

        def write_all() -> list[Answer]:
            try:
                return list(itertools.chain(*together([partial(write, n) for n in range(8)])))
            finally:
                writing.clear()

        def read(reader: Client) -> list[Answer]:
            """Page through the transcript again and again; each page is a prefix without a gap."""
            while writing:
                found = reader.messages(session_id)
                assert [message["sequence"] for message in found] == list(range(1, len(found) + 1))
            return []

        calls: list[Callable[[], list[Answer]]]
        calls = [write_all, partial(read, clients[18]), partial(read, clients[19])]
        written = together(calls)[0]
        assert Counter(answer.status for answer in written) == {201: 8 * each}
        self._assert_stored(client, session_id, writers=8, each=each)

    def _assert_stored(self, client: Client, session_id: str, *, writers: int, each: int) -> None:
        total = writers * each
        stored = client.messages(session_id)
        assert [message["sequence"] for message in stored] == list(range(1, total + 1))
        for number in range(writers):
            mine = [m["content"] for m in stored if m["content"].startswith(f"{number} ")]
            assert mine == [f"{number} {count}" for count in range(each)]
        session = client.session(session_id)
        assert (session["last_sequence"], session["message_count"]) == (total, total)
        assert session["version"] == 1 + total
        usage = session["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (3 * total, total)


TWO = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
SAME = {
    "append": ("POST", "/messages", {"role": "user", "content": "once"}, 201),
    "append_many": ("POST", "/messages", {"messages": TWO}, 201),
    "memory_patch": ("PATCH", "/working-memory", {"goal": "once"}, 200),
    "memory_replacement": ("PUT", "/working-memory", {"goal": "once"}, 200),
    "title": ("PATCH", "", {"title": "once"}, 200),
    "run": ("POST", "/runs", {"input": "once"}, 201),
    "tool_call": ("POST", "/tool-calls", {"name": "once"}, 201),
    "close": ("POST", "/close", {"reason": "once"}, 200),
}


class TestOneKey:
    """Report DUP-01: the same request ten times at once is done once."""

    @pytest.mark.parametrize("kind", SAME)
    def test_has_one_effect_and_one_answer(self, client, clients, kind):
        method, path, body, status = SAME[kind]
        session_id = client.new_session()
        before = client.session(session_id)["version"]
        key = f"{kind} {session_id}"
        answers = self._ten(clients, method, f"/sessions/{session_id}{path}", body, key)
        assert [answer.status for answer in answers] == [status] * 10
        assert sorted(answer.replayed for answer in answers) == [False] + [True] * 9
        assert [answer.body for answer in answers] == [answers[0].body] * 10
        assert client.session(session_id)["version"] == before + 1

    def test_makes_one_session(self, client, clients, select):
        answers = self._ten(clients, "POST", "/sessions", {"title": "one"}, "one session")
        assert [answer.status for answer in answers] == [201] * 10
        assert len({answer.body["session_id"] for answer in answers}) == 1
        found = select("SELECT count(*) FROM sessions_app_session WHERE title = 'one'")
        assert found == [(1,)]

    def test_ends_a_run_once(self, client, clients):
        session_id = client.new_session()
        run = client.post(f"/sessions/{session_id}/runs")
        path = f"/runs/{run['run_id']}/complete"
        answers = self._ten(clients, "POST", path, {"output": "done"}, run["run_id"])
        assert [answer.status for answer in answers] == [200] * 10
        assert sorted(answer.replayed for answer in answers) == [False] + [True] * 9

    def test_deletes_a_session_once(self, client, clients):
        session_id = client.new_session()
        answers = self._ten(clients, "DELETE", f"/sessions/{session_id}", None, session_id)
        assert [answer.status for answer in answers] == [204] * 10

    def test_with_two_bodies_is_one_effect_and_a_refusal(self, client, clients):
        session_id = client.new_session()
        calls = [
            partial(
                clients[number].request,
                "POST",
                f"/sessions/{session_id}/messages",
                {"role": "user", "content": f"body {number % 2}"},
                key=f"two bodies {session_id}",
            )
            for number in range(10)
        ]
        assert Counter(answer.status for answer in together(calls)) == {201: 5, 422: 5}
        assert client.session(session_id)["last_sequence"] == 1

    def _ten(self, clients, method, path, body, key) -> list[Answer]:
        ten = clients[:10]
        return together([partial(each.request, method, path, body, key=key) for each in ten])


class TestOneExternalId:
    """Report CON-04."""

    def test_is_created_by_one_and_found_by_all_others(self, client, clients):
        named = {"external_id": f"new {time.time_ns()}", "if_exists": "return"}

        def work(each: Client) -> tuple[Answer, Answer]:
            found = each.request("POST", "/sessions", named)
            return found, append(each, found.body["session_id"], "hello")

        outcomes = together([partial(work, each) for each in clients[:10]])
        found = Counter(created.status for created, _ in outcomes)
        assert found == {201: 1, 200: 9}
        assert [appended.status for _, appended in outcomes] == [201] * 10
        (session_id,) = {created.body["session_id"] for created, _ in outcomes}
        assert len(client.messages(session_id)) == 10

    def test_is_refused_to_all_but_one(self, clients):
        body = {"external_id": f"taken {time.time_ns()}"}
        calls = [partial(each.request, "POST", "/sessions", body) for each in clients[:10]]
        answers = together(calls)
        assert Counter(answer.status for answer in answers) == {201: 1, 409: 9}
        assert {answer.code for answer in answers if not answer.ok} == {"already_exists"}

    def test_comes_and_goes(self, clients):
        """Found, or made anew, or gone again: never an error of the server's."""
        named = {"external_id": f"fleeting {time.time_ns()}", "if_exists": "return"}

        def churn(each: Client) -> set[int]:
            statuses = set()
            for _ in range(15):
                found = each.request("POST", "/sessions", named)
                path = f"/sessions/{found.body['session_id']}"
                gone = each.request("DELETE", path)
                statuses |= {found.status, append(each, path.rpartition("/")[2], "late").status}
                assert gone.status in {204, 410}
            return statuses

        seen = set().union(*together([partial(churn, each) for each in clients[:6]]))
        assert seen <= {200, 201, 410}


def test_a_client_message_id_is_stored_once(client, clients):
    session_id = client.new_session()
    message = {"role": "user", "content": "once", "client_message_id": "mine"}
    path = f"/sessions/{session_id}/messages"
    answers = together([partial(each.insist, Write("POST", path, message)) for each in clients])
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 19}
    assert sorted(answer.body["created_count"] for answer in answers) == [0] * 19 + [1]
    assert client.session(session_id)["last_sequence"] == 1


def test_of_two_appends_that_expect_the_same_sequence_one_is_stored(client, clients):
    """Report CON-06: compare and set."""
    session_id = client.new_session()
    for last in range(10):
        body = {
            "messages": [{"role": "user", "content": f"{last}"}],
            "expected_last_sequence": last,
        }
        path = f"/sessions/{session_id}/messages"
        answers = together([partial(each.request, "POST", path, body) for each in clients[:3]])
        assert sorted(answer.status for answer in answers) == [201, 409, 409]
        refused = [answer.body for answer in answers if not answer.ok]
        assert {(body["code"], body["last_sequence"]) for body in refused} == {
            ("sequence_mismatch", last + 1)
        }
