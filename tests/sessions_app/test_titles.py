"""What a session is called that nobody has given a title."""

from typing import Any

import pytest

from sessions_app.services import SessionChanges
from sessions_app.services.forking import NewFork
from tests.domain import Desk, row, user


def parts(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


@pytest.fixture
def session_id(desk: Desk) -> str:
    return desk.open(title=None)


class TestATitle:
    def test_is_how_the_first_user_began(self, desk: Desk, session_id: str) -> None:
        desk.append(session_id, {"role": "system", "content": "Be brief."})
        assert row(session_id).title is None
        desk.append(session_id, {"role": "assistant", "content": "Hi"}, user("Mend it"))
        desk.append(session_id, user("And now this"))
        assert row(session_id).title == "Mend it"
        assert row(session_id).title_is_said

    def test_that_was_given_stays(self, desk: Desk) -> None:
        session_id = desk.open(title="Given")
        desk.append(session_id, user("Mend it"))
        assert row(session_id).title == "Given"

    def test_that_was_given_empty_stays(self, desk: Desk) -> None:
        session_id = desk.open(title="")
        desk.append(session_id, user("Mend it"))
        assert row(session_id).title == ""

    def test_that_was_given_empty_outlives_a_message_without_words(self, desk: Desk) -> None:
        session_id = desk.open(title="")
        desk.append(session_id, user(" "))
        desk.sessions.remove_message(session_id=session_id, sequence=1)
        assert row(session_id).title == ""

    @pytest.mark.parametrize(("title", "is_said"), [(None, True), ("Another", False)])
    def test_of_a_fork_is_its_parents_or_given(
        self, desk: Desk, session_id: str, title: str | None, is_said: bool
    ) -> None:
        desk.append(session_id, user("Mend it"))
        made = desk.sessions.fork(session_id=session_id, new=NewFork(title=title))
        assert (made.title, made.title_is_said) == (title or "Mend it", is_said)

    def test_that_is_sent_back_as_it_was_is_said_still(self, desk: Desk, session_id: str) -> None:
        desk.append(session_id, user("Mend it"))
        for title, is_said in (("Mend it", True), ("Another", False), ("Mend it", False)):
            desk.sessions.update(session_id=session_id, changes=SessionChanges(title=title))
            assert row(session_id).title_is_said is is_said

    def test_that_was_said_goes_with_the_session(self, desk: Desk, session_id: str) -> None:
        desk.append(session_id, user("Mend it"))
        desk.sessions.delete(session_id=session_id)
        assert (row(session_id).title, row(session_id).title_is_said) == (None, False)

    def test_may_be_given_later(self, desk: Desk, session_id: str) -> None:
        desk.append(session_id, user("Mend it"))
        desk.sessions.update(session_id=session_id, changes=SessionChanges(title="Given"))
        desk.append(session_id, user("And now this"))
        assert row(session_id).title == "Given"
        assert not row(session_id).title_is_said

    @pytest.mark.parametrize(
        ("message", "title"),
        [
            (user("\n \n  Mend\tit,  please \nand then"), "Mend it, please"),
            (user("x" * 80), "x" * 80),
            (user("word " * 30), "word " * 15 + "word…"),
            (parts({"type": "text", "text": "Mend it"}), "Mend it"),
            (
                parts({"type": "image_url", "image_url": {}}, {"type": "text", "text": "See?"}),
                "See?",
            ),
            ({"item": {"type": "message", "role": "user", "content": "No role"}}, None),
            (
                {
                    "role": "user",
                    "item": {
                        "type": "message",
                        "role": "user",
                        "content": [{"type": "input_text", "text": "An item"}],
                    },
                },
                "An item",
            ),
            (user(" \n "), None),
            (parts({"type": "image_url", "image_url": {"url": "x"}}), None),
            ({"role": "assistant", "content": "Hi"}, None),
        ],
    )
    def test_is_a_line_of_words(
        self, desk: Desk, session_id: str, message: Any, title: str | None
    ) -> None:
        desk.append(session_id, message)
        assert row(session_id).title == title

    def test_comes_of_the_first_that_says_something(self, desk: Desk, session_id: str) -> None:
        desk.append(session_id, user(" "), user("Mend it"), user("And this"))
        assert row(session_id).title == "Mend it"

    def test_is_not_looked_for_in_parts_that_are_no_objects(
        self, desk: Desk, session_id: str
    ) -> None:
        item = {"type": "message", "content": ["No part", ["nor", "this"]]}
        desk.append(session_id, {"role": "user", "item": item})
        assert row(session_id).title is None

    def test_is_no_tools_answer(self, desk: Desk, session_id: str) -> None:
        used = {"type": "tool_use", "id": "c", "name": "ls", "input": {}}
        desk.append(session_id, {"role": "assistant", "content": [used]})
        desk.append(
            session_id, parts({"type": "tool_result", "tool_use_id": "c", "content": "a file"})
        )
        assert row(session_id).title is None

    def test_goes_with_the_message_that_gave_it(self, desk: Desk, session_id: str) -> None:
        desk.append(session_id, user("A secret"), user("Another"))
        desk.sessions.remove_message(session_id=session_id, sequence=2)
        assert row(session_id).title == "A secret"
        desk.sessions.remove_message(session_id=session_id, sequence=1)
        assert (row(session_id).title, row(session_id).search_text) == (None, "")
        desk.append(session_id, user("Something else"))
        assert row(session_id).title == "Something else"

    def test_is_one_version_with_its_message(self, desk: Desk, session_id: str) -> None:
        before = row(session_id).version
        desk.append(session_id, user("Mend it"))
        assert row(session_id).version == before + 1
