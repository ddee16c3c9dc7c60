"""How much a session's page shows and reads of what an agent has made large."""

import json

import pytest

from sessions_app.services import transcript
from tests.admin import read
from tests.domain import assistant, calling, result, user
from tests.factories import add_messages, make_session
from tests.runs_app.pages.test_session_page import TABS, at, turns


@pytest.fixture
def operator(entered):
    return entered("superuser")


class TestThePage:
    def test_has_the_first_of_very_many_calls(self, operator, agent):
        session = make_session(account=agent)
        ids = [f"c{number}" for number in range(1_000)]
        add_messages(calling(*ids, arguments=json.dumps({"a": "x" * 900})), session=session)
        results = [result(each, json.dumps(["y" * 20] * 100)) for each in ids]
        add_messages(*results, session=session)
        for query in ({"at": 1}, {}):
            response = operator.get(at(session), query)
            assert len(response.content) < 700_000
        page = read(operator, at(session), at=1)
        assert "1000 calls at once" in page.words()
        assert "950 more calls" in page.words()
        assert at(session, "tools/") in page.links()
        # Results stand with their calls, and alone where these have no place.
        assert turns(page) == ["m1"]
        assert {"m2", "m16"} <= {attrs.get("id") for attrs in page.of("details")}
        assert turns(read(operator, at(session), at=60))[-1] == "m74"

    def test_reads_only_so_much_of_all_calls(self, operator, agent, monkeypatch):
        monkeypatch.setattr(transcript, "CALLS_BYTES", 10)
        session = make_session(account=agent)
        add_messages(calling("a", "b", arguments='"Geheim"'), session=session)
        page = read(operator, at(session))
        assert page.words().count("Geheim") == 2  # of the first, short and whole
        assert page.words().count("Too large to show here") == 1

    def test_stays_small_whatever_is_in_it(self, operator, agent):
        session = make_session(account=agent)
        huge = "x" * 5_000_000
        add_messages(user(huge), calling("a", arguments=huge[:500_000]), session=session)
        add_messages(result("a", huge), assistant("W" * 100_000), session=session)
        for tab in TABS:
            assert len(operator.get(at(session, tab)).content) < 400_000
        assert len(operator.get(at(session, "messages/1/0/")).content) < 400_000
