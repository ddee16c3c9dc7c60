"""What lists cost, what they find, and what they show."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs_app.admin.runs import RunAdmin
from sessions_app.admin import paging
from sessions_app.admin.records import MessageAdmin, WorkingMemoryAdmin
from sessions_app.admin.tool_calls import ToolCallAdmin
from sessions_app.models import AccessToken, Session
from sessions_app.services import Actor, SessionManager
from sessions_app.services.tokens import issue_token
from tests.admin import STORED, list_of, make_whole, read
from tests.factories import (
    add_messages,
    make_lapsed_session,
    make_messages,
    make_run,
    make_session,
    make_tool_call,
)

SESSIONS = "/admin/sessions_app/session/"
TOKENS = "/admin/sessions_app/accesstoken/"
HEAVY = {
    *("body", "arguments", "result", "memory", "metadata", "input", "output", "error"),
    *("search_text", "error_message", "password", "text"),
}


@pytest.fixture
def operator(entered):
    return entered("superuser")


def queries(client, address, **data):
    with CaptureQueriesContext(connection) as captured:
        read(client, address, **data)
    return [query["sql"] for query in captured.captured_queries]


def fill(agent, count):
    """So many rows of each kind."""
    manager = SessionManager(Actor.account(agent))
    for number in range(count):
        session = make_session(account=agent, title=f"Session {number}", idle_timeout_seconds=900)
        run = make_run(session=session, model="m")
        make_messages(session=session, run_id=run.run_id)
        make_tool_call(session=session, run_id=run.run_id)
        manager.patch_memory(session_id=session.pk, patch={"goal": "g"}, run_id=run.run_id)
        issue_token(account=agent, name=f"Token {number}")


class TestCost:
    def test_of_a_list_is_a_few_questions(self, operator, agent):
        fill(agent, 2)
        for address in [TOKENS, *map(list_of, STORED)]:
            for data in ({}, {"all": ""}, {"q": "s"}):
                read(operator, address, **data)  # what is asked once per process
                # Browser session, person, permissions (two), count, rows; what the words match.
                most = 7 if "q" in data else 6
                assert len(queries(operator, address, **data)) <= most, address

    def test_of_a_page_does_not_grow_with_what_hangs_on_it(self, operator, agent):
        whole = make_whole(agent)
        pages = [whole.page(name) for name in STORED]
        for page in pages:
            read(operator, page)  # what is asked once per process
        few = [len(queries(operator, page)) for page in pages]
        make_messages(session=whole.session, count=100)
        for _ in range(20):
            make_tool_call(session=whole.session)
        many = [len(queries(operator, page)) for page in pages]
        # The newest messages belong to no run, so that none is looked up.
        assert all(now <= before for now, before in zip(many, few, strict=True))

    @pytest.mark.parametrize("address", [TOKENS, *map(list_of, STORED)])
    def test_no_list_reads_what_may_be_long(self, operator, agent, address):
        fill(agent, 2)
        for sql in queries(operator, address):
            selected = sql.split(" FROM ")[0]
            if "auth_user" in sql and "WHERE" in sql and "sessions_app" not in sql:
                continue  # who is logged in
            assert not [name for name in HEAVY if f'."{name}"' in selected], sql

    def test_of_counting_ends_at_a_limit(self, operator, agent, monkeypatch):
        monkeypatch.setattr(paging, "MOST_COUNTED", 60)
        session = make_session(account=agent)
        make_messages(session=session, count=65)
        asked = queries(operator, "/admin/sessions_app/message/")
        (count,) = [sql for sql in asked if "COUNT(" in sql]
        assert "LIMIT 61" in count
        assert '"body"' not in count
        page = read(operator, "/admin/sessions_app/message/")
        assert "60+ messages" in page.words()
        assert "a filter or a search reaches the others" in page.words()

    @pytest.mark.parametrize("address", [TOKENS, *map(list_of, STORED)])
    @pytest.mark.parametrize(
        "data",
        [
            {"p": "999999"},
            {"p": "-1"},
            {"p": "9" * 5000},
            {"p": "x"},
            {"all": ""},
            {"o": "1.-2.3.99"},
            {"q": "\x00"},
            {"q": "%_\\'\""},
            {"q": "\ud7ff😀" * 200},
            {"session": "\x00"},
            {"status": "nonsense"},
            {"created": "nonsense", "active": "-1", "role": "x", "subject": "\x00"},
        ],
    )
    def test_bad_questions_are_borne(self, operator, agent, address, data):
        fill(agent, 1)
        assert operator.get(address, data, follow=True).status_code in {200, 400}

    @pytest.mark.parametrize("name", STORED)
    @pytest.mark.parametrize("lookup", ["session__title__contains", "body__regex", "password"])
    def test_no_column_is_asked_that_is_no_filter(self, operator, name, lookup):
        assert operator.get(list_of(name), {lookup: "x"}).status_code == 400

    def test_no_filter_asks_for_distinct_values(self, operator, agent):
        fill(agent, 2)
        for name in STORED:
            assert not [sql for sql in queries(operator, list_of(name)) if "DISTINCT" in sql]

    def test_no_page_has_a_long_select(self, operator, agent):
        for _ in range(101):
            make_session(account=agent)
        whole = make_whole(agent)
        for address in [TOKENS + "add/", *(whole.page(name) for name in STORED)]:
            assert len(read(operator, address).of("option")) <= 100


class TestSessions:
    def found(self, client, **data):
        page = read(client, SESSIONS, **data)
        names = {session.pk: session.title for session in Session.objects.all()}
        keys = [
            link.split("/")[4].replace("_5F", "_") for link in page.links() if "sess_5F" in link
        ]
        return [names[key] for key in keys]

    def test_are_filtered_by_what_they_are_now(self, operator, agent):
        make_session(account=agent, title="active")
        make_lapsed_session(account=agent, title="lapsed")
        manager = SessionManager(Actor.account(agent))
        for title, end in (("closed", manager.close), ("deleted", manager.delete)):
            end(session_id=make_session(account=agent, title=title).pk)
        assert self.found(operator) == ["closed", "lapsed", "active"]
        assert self.found(operator, status="ACTIVE") == ["active"]
        assert self.found(operator, status="EXPIRED") == ["lapsed"]
        assert self.found(operator, status="CLOSED") == ["closed"]
        assert self.found(operator, status="DELETED") == [None]

    def test_that_lapsed_are_expired_on_every_page(self, operator, agent):
        session = make_lapsed_session(account=agent)
        for address in (SESSIONS, f"{SESSIONS}{session.pk}/change/"):
            assert {"class": "badge badge-expired"} in read(operator, address).of("span")
        assert Session.objects.get().status == "ACTIVE"

    def test_are_found_by_id_title_user_and_external_id(self, operator, agent):
        session = make_session(account=agent, title="Grüße an STRASSE", external_id="Ext-7")
        make_session(account=agent, title="other", user_id="User-1")
        hello = ["Grüße an STRASSE"]
        assert self.found(operator, q=session.pk) == hello
        assert self.found(operator, q="straße") == hello
        assert self.found(operator, q="GRÜSSE") == hello
        assert self.found(operator, q="ext-7") == hello
        assert self.found(operator, q="User-") == ["other"]
        # The same on every database: a user is spelt as the client spells it.
        assert self.found(operator, q="user-1") == []
        assert self.found(operator, q="%") == []
        assert self.found(operator, q="_") == []
        assert len(self.found(operator, q=session.pk[:9])) == 2

    def test_are_filtered_by_agent_user_account_and_open_calls(self, operator, agent):
        session = make_session(account=agent, title="a", agent_id="x'y\"&", user_id="u")
        make_tool_call(session=session)
        make_session(account=agent, title="b", agent_id="x")
        assert self.found(operator, agent="x'y\"&") == ["a"]
        assert self.found(operator, agent="x") == ["b"]
        assert self.found(operator, user="u") == ["a"]
        assert self.found(operator, account="agent") == ["b", "a"]
        assert self.found(operator, account="somebody") == []
        assert self.found(operator, open_calls="yes") == ["a"]
        assert self.found(operator, open_calls="no") == ["b"]
        assert self.found(operator, active="1h") == ["b", "a"]

    def test_keep_other_filters_in_a_typed_one(self, operator, agent):
        page = read(operator, SESSIONS, agent="a&b", status="ACTIVE", q="c", p="1")
        hidden = [tag for tag in page.of("input") if tag.get("type") == "hidden"]
        given = {(tag["name"], tag["value"]) for tag in hidden}
        assert {("agent", "a&b"), ("status", "ACTIVE"), ("q", "c")} <= given
        (typed,) = [
            tag for tag in page.of("input") if tag.get("value") == "a&b" and tag["type"] == "text"
        ]
        assert typed["aria-label"] == "Agent"

    def test_lead_to_their_records(self, operator, agent):
        whole = make_whole(agent)
        for name in STORED[1:]:
            address = f"{list_of(name)}?session={whole.session.pk}"
            shown = read(operator, address)
            assert (
                any("/change/" in link and "run_5F" not in link for link in shown.links())
                or name == "runs_app_run"
            )

    def test_have_their_events_for_history(self, operator, agent):
        session = make_session(account=agent)
        response = operator.get(f"{SESSIONS}{session.pk}/history/")
        assert response.url == f"/admin/sessions_app/sessionevent/?session={session.pk}"

    @pytest.mark.parametrize("pk", ["sess_unknown", "x%00y", "%F0%9F%98%80", "_5F", "'"])
    def test_that_are_unknown_are_told_so(self, operator, pk):
        response = operator.get(f"{SESSIONS}{pk}/change/", follow=True)
        assert response.status_code == 404


class TestRecords:
    def test_of_a_deleted_session_are_gone_before_they_are_purged(self, operator, agent):
        whole = make_whole(agent)
        SessionManager(Actor.account(agent)).delete(session_id=whole.session.pk)
        for name in STORED[1:]:
            if name == "sessions_app_sessionevent":
                continue
            assert operator.get(whole.page(name)).status_code == 302
            assert "0 " in read(operator, list_of(name)).words()

    def test_of_one_session_stand_in_its_order(self, operator, agent):
        session = make_session(account=agent)
        sent = add_messages(*({"role": "user", "content": "x"} for _ in range(3)), session=session)
        page = read(operator, "/admin/sessions_app/message/", session=session.pk)
        keys = [link.split("/")[4] for link in page.links() if "/msg_" in link]
        assert [key.replace("_5F", "_") for key in keys] == [message.pk for message in sent]

    def test_lead_to_their_neighbours(self, operator, agent):
        session = make_session(account=agent)
        first, second, third = make_messages(session=session, count=3)
        page = read(operator, f"/admin/sessions_app/message/{second.pk}/change/")
        beside = {tag["rel"]: tag["href"] for tag in page.of("a") if "rel" in tag}
        assert beside["prev"].endswith(f"{first.pk.replace('_', '_5F')}/change/")
        assert beside["next"].endswith(f"{third.pk.replace('_', '_5F')}/change/")

    def test_that_were_removed_are_marked(self, operator, agent):
        session = make_session(account=agent)
        (message,) = make_messages(session=session)
        SessionManager(Actor.account(agent)).remove_message(session_id=session.pk, sequence=1)
        page = read(operator, f"/admin/sessions_app/message/{message.pk}/change/")
        assert {"class": "badge badge-removed"} in page.of("span")
        assert "Message 1" not in page.text

    def test_name_their_long_columns(self):
        """A column that is added to a model and may be long is deferred in its list."""
        for admin in (MessageAdmin, WorkingMemoryAdmin, ToolCallAdmin, RunAdmin):
            columns = {
                field.name
                for field in _model_of(admin)._meta.fields
                if field.get_internal_type() in {"TextField", "JSONTextField"}
            }
            assert columns <= set(admin.heavy)


def _model_of(admin_class):
    from django.contrib import admin

    return next(model for model, each in admin.site._registry.items() if type(each) is admin_class)


def test_tokens_of_no_use_are_marked(operator, agent):
    issue_token(account=agent, name="old")
    AccessToken.objects.update(expiry=timezone.now())
    assert {"class": "badge badge-expired"} in read(operator, TOKENS).of("span")
