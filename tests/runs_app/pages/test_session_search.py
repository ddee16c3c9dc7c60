"""Looking for words in a session: the page of the hits."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import ContentRead
from tests.admin import Page, make_person, read
from tests.domain import assistant, calling, result, user
from tests.factories import add_messages, make_session

HTMX = {"HX-Request": "true"}


def at(session):
    return f"/admin/sessions/{session.pk}/search/"


@pytest.fixture
def session(agent):
    session = make_session(account=agent, title="A title")
    add_messages(user("Where is my refund?"), assistant("On its way."), session=session)
    return session


class TestTheHits:
    def test_lead_to_their_messages(self, operator, session):
        page = read(operator, at(session), q="REFUND")
        assert f"/admin/sessions/{session.pk}/?at=1#m1" in page.links()
        assert f"/admin/sessions/{session.pk}/?at=2#m2" not in page.links()
        assert "1 message with “REFUND”" in page.words()
        assert len(page.of("mark")) == 1

    def test_go_on_in_parts(self, operator, session):
        add_messages(*(user(f"refund {n}") for n in range(40)), session=session)
        page = read(operator, at(session), q="refund")
        (further,) = {link for link in page.links() if "before=" in link}
        response = operator.get(at(session) + further.partition("/search/")[2], headers=HTMX)
        part = Page(response.content.decode())
        assert (len(part.of("mark")), part.of("main")) == (11, [])
        assert not [link for link in part.links() if "before=" in link]

    @pytest.mark.parametrize(
        "words", ["", " ", "nowhere", "\x00", "%", "x" * 70_000, "<script>", "\u202e", "'\"\\"]
    )
    def test_may_be_none(self, operator, session, words):
        page = read(operator, at(session), q=words)
        assert page.of("mark") == []
        assert page.scripts == ""

    @pytest.mark.parametrize("before", ["x", "-1", "0", "9" * 30])
    def test_ignore_a_place_that_is_none(self, operator, session, before):
        assert operator.get(at(session), {"q": "refund", "before": before}).status_code == 200

    def test_cost_the_same_for_few_and_many(self, operator, agent):
        counts = []
        for number in (5, 100):
            session = make_session(account=agent)
            batch = [
                each
                for n in range(number)
                for each in (user("word"), calling(f"c{n}", name="word"), result(f"c{n}", "word"))
            ]
            add_messages(*batch, session=session)
            read(operator, at(session), q="word")
            with CaptureQueriesContext(connection) as asked:
                read(operator, at(session), q="word")
            counts.append(len(asked))
        assert counts[0] == counts[1]


class TestReading:
    def test_is_written_down(self, operator, session):
        read(operator, at(session), q="refund")
        assert ContentRead.objects.get().page == "transcript"

    def test_is_for_who_may(self, entered, session):
        person = make_person("operators")
        person.groups.get().permissions.remove(Permission.objects.get(codename="read_content"))
        page = read(entered("operators"), at(session), q="refund")
        assert "may not read what sessions contain" in page.words()
        assert "Where is my" not in page.words()
        asked = entered("operators").get(at(session), {"q": "refund"}, headers=HTMX)
        assert asked.status_code == 403
        assert not ContentRead.objects.exists()
