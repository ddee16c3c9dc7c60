"""Rewinds, compactions and forks of a session to which others append all the while."""

import itertools
import random
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.races.load import Answer, Client, together

WRITERS = 5
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}


def turn(name: str) -> list[dict[str, Any]]:
    """A batch: of its call and its result, no cut may have one alone."""
    return [
        {"role": "user", "content": name},
        {"role": "assistant", "content": name, "tool_calls": [CALL]},
        {"role": "tool", "content": name, "tool_call_id": "c1"},
    ]


def everything(client: Client, session_id: str) -> list[Any]:
    query = "limit=1000&include_superseded=true"
    page = client.get(f"/sessions/{session_id}/messages?{query}")
    assert not page["has_more"]
    found: list[Any] = page["data"]
    return found


@pytest.fixture
def told(client, clients, rounds):
    """What each kind of request was answered, and the session."""
    session_id = client.new_session(working_memory={"goal": "0"})
    path = f"/sessions/{session_id}"
    client.post(f"{path}/messages", {"messages": turn("first")})

    def append(number: int) -> list[Answer]:
        batches = [{"messages": turn(f"{number} {count}")} for count in range(rounds)]
        return [clients[number].request("POST", f"{path}/messages", each) for each in batches]

    def from_the_end(number: int, move: str, name: str, **more: Any) -> list[Answer]:
        """To a place a little before the newest message."""
        dice, who = random.Random(number), clients[number]
        answers = []
        for _ in range(rounds):
            last = who.session(session_id)["last_sequence"]
            body = {name: max(1, last - dice.randint(0, 6)), **more}
            answers.append(who.request("POST", f"{path}/{move}", body))
        return answers

    answers = together(
        [
            *[partial(append, number) for number in range(WRITERS)],
            partial(from_the_end, 10, "rewind", "to_sequence"),
            partial(from_the_end, 11, "fork", "at_sequence"),
            partial(from_the_end, 12, "compact", "through_sequence", summary="So far."),
        ]
    )
    appended = list(itertools.chain(*answers[:WRITERS]))
    return {"id": session_id, "append": appended} | dict(
        zip(("rewind", "fork", "compact"), answers[WRITERS:], strict=True)
    )


@pytest.fixture(params=[8, pytest.param(40, marks=pytest.mark.soak)])
def rounds(request):
    return request.param


def test_each_is_done_wholly_before_or_after_each_append(client, told, rounds):
    assert Counter(answer.status for answer in told["append"]) == {201: WRITERS * rounds}
    assert {answer.status for answer in told["rewind"]} == {200}
    assert {answer.status for answer in told["fork"]} == {201}
    # A rewind may have left nothing that a summary could stand for.
    assert {answer.status for answer in told["compact"]} <= {201, 400}
    stored = {message["sequence"]: message for message in everything(client, told["id"])}
    made = {
        message["sequence"]: answer.body["version"]
        for answer in told["append"]
        for message in answer.body["messages"]
    }
    rewinds = [
        (answer.body["version"], answer.body["to_sequence"])
        for answer in told["rewind"]
        if answer.body["changed"]
    ]
    assert rewinds
    for sequence, version in made.items():
        gone = any(version < at and sequence > cut for at, cut in rewinds)
        assert ("superseded_at" in stored[sequence]) == gone, (sequence, version, rewinds)
    for answer in told["fork"]:
        _assert_prefix(client, answer.body, stored)


def _assert_prefix(client: Client, fork: Any, stored: dict[int, Any]) -> None:
    """As the original was then: what was superseded later is not, and no turn is there in part."""
    copied = everything(client, fork["session_id"])
    assert [each["sequence"] for each in copied] == list(range(1, fork["last_sequence"] + 1))
    same = ("content", "role", "type")
    for each in copied:
        assert [each[key] for key in same] == [stored[each["sequence"]][key] for key in same]
    live = [each for each in copied if "superseded_at" not in each and each["type"] == "message"]
    answered = [each["content"] for each in live if each["role"] == "tool"]
    called = [each["content"] for each in live if "tool_calls" in each]
    assert answered == called
