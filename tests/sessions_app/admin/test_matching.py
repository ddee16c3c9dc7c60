"""Operations on all that match a filter: what is forecast, what is done, who may."""

import re

import pytest
from django.utils import timezone

from sessions_app.admin import confirm, matching
from sessions_app.ids import new_id
from sessions_app.models import BulkMove, Session
from sessions_app.services import Actor, SessionManager, bulk
from tests.admin import Page, make_whole, told
from tests.factories import make_lapsed_session, make_session

LIST = "/admin/sessions_app/session/"


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    """So that three sessions are too many to be chosen one by one."""
    monkeypatch.setattr(confirm, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(matching, "MOST_AT_ONCE", 2)


def ask(client, action, query="agent=x"):
    response = client.post(f"{LIST}?{query}", {"action": action, "select_across": "1"}, follow=True)
    return Page(response.content.decode())


def send(client, action, page, *, reason="because", **more):
    given = {tag["name"]: tag["value"] for tag in page.of("input") if tag.get("type") == "hidden"}
    return client.post(f"{LIST}{action}/", {**given, "reason": reason, **more}, follow=True)


def statuses(**narrowed):
    return sorted(Session.objects.filter(**narrowed).values_list("status", flat=True))


class TestAllThatMatch:
    def test_are_forecast_by_what_they_are_now(self, operator, agent):
        make_whole(agent, agent_id="x")
        make_session(account=agent, agent_id="x")
        make_lapsed_session(account=agent, agent_id="x")
        done = make_session(account=agent, agent_id="x")
        SessionManager(Actor.account(agent)).close(session_id=done.pk)
        make_session(account=agent, agent_id="y")
        words = ask(operator, "close").words()
        assert "2 sessions will be closed." in words
        assert "1 unfinished run will be cancelled. 1 open tool call will be cancelled." in words
        assert "1 stays as it is: closed already." in words
        assert "1 stays as it is: expired; it can only be resumed or deleted." in words
        assert "All sessions" not in words
        assert statuses() == ["ACTIVE"] * 4 + ["CLOSED"]

    def test_are_changed_and_no_other(self, operator, agent):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        make_session(account=agent, agent_id="y")
        response = send(operator, "close", ask(operator, "close"))
        page = Page(response.content.decode())
        assert re.fullmatch(r"/admin/sessions/bulk/bulk_\w+/", response.redirect_chain[0][0])
        assert "3 of 3 done" in page.words()
        assert "3 sessions were closed." in page.words()
        assert statuses(agent_id="x") == ["CLOSED"] * 3
        assert statuses(agent_id="y") == ["ACTIVE"]

    @pytest.mark.parametrize(
        ("query", "said"), [("agent=x", "what the list is filtered by"), ("", "was not filtered")]
    )
    def test_say_whether_anything_was_filtered(self, operator, agent, query, said):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        assert said in ask(operator, "close", query).words()

    def test_do_not_grow_while_one_thinks(self, operator, agent):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        page = ask(operator, "close")
        late = make_session(account=agent, agent_id="x")
        send(operator, "close", page)
        assert statuses(pk=late.pk) == ["ACTIVE"]
        assert statuses() == ["ACTIVE", "CLOSED", "CLOSED", "CLOSED"]

    def test_do_not_grow_by_older_ones_that_come_to_match(self, operator, agent):
        older = make_session(account=agent, agent_id="x")
        SessionManager(Actor.account(agent)).close(session_id=older.pk)
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        page = ask(operator, "remove", "agent=x&status=ACTIVE")
        assert "3 sessions will be deleted for good." in page.words()
        SessionManager(Actor.account(agent)).resume(session_id=older.pk)
        send(operator, "remove", page, typed="3")
        assert statuses(pk=older.pk) == ["ACTIVE"]
        assert statuses() == ["ACTIVE", "DELETED", "DELETED", "DELETED"]

    def test_say_the_same_when_asked_again(self, operator, agent, monkeypatch):
        monkeypatch.setattr(bulk, "MOST_TARGETS", 3)
        for _ in range(4):
            make_session(account=agent, agent_id="x")
        done = make_session(account=agent, agent_id="x", title="Was closed")
        SessionManager(Actor.account(agent)).close(session_id=done.pk)
        page = ask(operator, "close")
        again = Page(send(operator, "close", page, reason=" ").content.decode())
        for words in (page.words(), again.words()):
            assert "More than 3 would change: these are the newest 3 of them." in words
            assert "3 sessions will be closed. 1 stays as it is: closed already." in words
            assert "Was closed" not in words

    def test_are_shown_at_least_the_newest(self, operator, agent, monkeypatch):
        monkeypatch.setattr(matching, "_MOST_SHOWN", 2)
        for number in range(3):
            make_session(account=agent, agent_id="x", title=f"Task {number}")
        words = ask(operator, "close").words()
        assert "The newest 2 of them" in words
        assert ("Task 2" in words, "Task 1" in words, "Task 0" in words) == (True, True, False)

    def test_can_be_more_than_a_statement_takes_values(self, operator, agent, monkeypatch):
        """Sessions that stay take no place among the most that are taken at once."""
        monkeypatch.setattr(bulk, "MOST_TARGETS", 1_000)
        make_session(account=agent, agent_id="x", title="The oldest")
        newest = (new_id("sess") for _ in range(1_001))
        now = timezone.now()
        Session.objects.bulk_create(
            Session(
                session_id=pk,
                account=agent,
                agent_id="x",
                status="CLOSED",
                closed_at=now,
                created_at=now,
                last_activity_at=now,
                updated_at=now,
            )
            for pk in newest
        )
        page = ask(operator, "close")
        assert "1 session will be closed." in page.words()
        assert "More than 1,000 stay as they are; the others are not counted." in page.words()
        send(operator, "close", page)
        assert statuses(title="The oldest") == ["CLOSED"]

    def test_that_are_few_are_named(self, operator, agent):
        session = make_session(account=agent, agent_id="x", title="The only one")
        page = ask(operator, "close")
        assert "The only one" in page.words()
        assert told(send(operator, "close", page)) == ["1 session was closed."]
        assert statuses(pk=session.pk) == ["CLOSED"]

    def test_that_are_none_are_said_so(self, operator, agent):
        assert "none of what was chosen is there" in ask(operator, "close").words()

    def test_are_deleted_only_with_their_count(self, operator, agent):
        for _ in range(3):
            make_whole(agent, agent_id="x")
        page = ask(operator, "remove")
        words = page.words()
        assert "3 sessions will be deleted for good." in words
        assert "6 messages will be removed." in words
        assert "This cannot be undone" in words
        for typed in ("", "2", "all"):
            refused = send(operator, "remove", page, typed=typed)
            assert "That is not what is asked for" in refused.content.decode()
        assert statuses() == ["ACTIVE"] * 3
        done = send(operator, "remove", page, typed="3")
        assert "3 sessions were deleted." in Page(done.content.decode()).words()
        assert statuses() == ["DELETED"] * 3

    def test_need_a_reason(self, operator, agent):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        send(operator, "close", ask(operator, "close"), reason=" ")
        assert statuses() == ["ACTIVE"] * 3
        assert not bulk.going_on().exists()

    def test_beyond_the_most_are_left_for_later(self, operator, agent, monkeypatch):
        monkeypatch.setattr(bulk, "MOST_TARGETS", 3)
        for _ in range(5):
            make_session(account=agent, agent_id="x")
        page = ask(operator, "close")
        assert "More than 3 would change: these are the newest 3 of them." in page.words()
        send(operator, "close", page)
        newest_first = Session.objects.order_by("-pk").values_list("status", flat=True)
        assert list(newest_first) == ["CLOSED"] * 3 + ["ACTIVE"] * 2

    def test_cost_the_same_however_many(self, operator, agent, django_assert_max_num_queries):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        ask(operator, "close")  # what is asked once per process
        for _ in range(2):
            with django_assert_max_num_queries(16):
                ask(operator, "close")
            for _ in range(20):
                make_session(account=agent, agent_id="x")

    @pytest.mark.parametrize("move", ["", "x", "bulk_'--", "\x00", "bulk_unknown"])
    def test_are_none_that_nobody_was_asked_about(self, operator, agent, move):
        make_session(account=agent)
        data = {"move": move, "reason": "r", "_changelist_filters": "agent=x"}
        response = operator.post(f"{LIST}close/", data, follow=True)
        assert told(response) == ["Nothing was changed: this was asked too long ago."]
        assert response.redirect_chain[-1][0] == f"{LIST}?agent=x"
        assert statuses() == ["ACTIVE"]

    @pytest.mark.parametrize(
        "query", ["body__regex=x", "user=%00", "metadata=x", "active_to=x", "q=%00"]
    )
    def test_are_none_by_a_bad_filter(self, operator, agent, query):
        for _ in range(3):
            make_session(account=agent)
        data = {"action": "close", "select_across": "1"}
        response = operator.post(f"{LIST}?{query}", data, follow=True)
        assert response.status_code in {200, 400}
        assert not BulkMove.objects.exists()
        assert statuses() == ["ACTIVE"] * 3

    def test_are_confirmed_by_whom_they_were_shown(self, operator, entered, agent):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        page = ask(operator, "close")
        told_other = told(send(entered("superuser"), "close", page))
        assert told_other == ["Nothing was changed: this was asked too long ago."]
        assert told(send(operator, "expire", page)) == told_other
        assert statuses() == ["ACTIVE"] * 3

    def test_are_done_once_however_often_it_is_sent(self, operator, agent):
        for _ in range(3):
            make_session(account=agent, agent_id="x")
        page = ask(operator, "close")
        first, second = (send(operator, "close", page) for _ in range(2))
        assert first.redirect_chain == second.redirect_chain
        assert BulkMove.objects.count() == 1

    def test_are_for_those_who_may(self, entered, agent):
        make_session(account=agent, agent_id="x")
        data = {"move": "bulk_x", "reason": "r", "_changelist_filters": ""}
        assert entered("support").post(f"{LIST}close/", data).status_code == 403
        ask(entered("support"), "close")
        assert not BulkMove.objects.exists()
        assert statuses() == ["ACTIVE"]
