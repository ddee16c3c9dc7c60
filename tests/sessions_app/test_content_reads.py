from datetime import timedelta

import pytest
from django.utils import timezone

from sessions_app.models import ContentRead
from sessions_app.services import Actor
from sessions_app.services.content_reads import ONE_VISIT, record_read
from sessions_app.states import ContentPage
from tests.factories import make_account, make_session

NOON = timezone.now()


@pytest.fixture
def session(db):
    return make_session(account=make_account("agent"))


def read(session, *, reader="lin", page=ContentPage.TRANSCRIPT, after=timedelta(0)):
    actor = Actor.operator(make_account(reader))
    return record_read(actor=actor, session_id=session.pk, page=page, now=NOON + after)


class TestARead:
    def test_is_written_down(self, session):
        assert read(session)
        noted = ContentRead.objects.get()
        assert (noted.session, noted.reader, noted.page) == (session, "lin", "transcript")
        assert noted.read_at == NOON

    def test_again_is_the_same_visit_for_some_minutes(self, session):
        read(session)
        assert not read(session, after=ONE_VISIT - timedelta(seconds=1))
        assert read(session, after=ONE_VISIT)
        assert ContentRead.objects.count() == 2

    def test_by_another_or_of_another_page_is_another(self, session):
        read(session)
        assert read(session, reader="maria")
        assert read(session, page=ContentPage.MEMORY)
        assert read(make_session(account=session.account))

    def test_costs_one_question_when_it_is_known(self, session, django_assert_num_queries):
        read(session)
        actor = Actor.operator(make_account("lin"))
        with django_assert_num_queries(1):
            record_read(actor=actor, session_id=session.pk, page=ContentPage.TRANSCRIPT, now=NOON)
