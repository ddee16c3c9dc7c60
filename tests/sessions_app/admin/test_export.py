"""The sessions of a list as a table: what it holds, and that no spreadsheet runs any of it."""

import csv
import io

import pytest

from sessions_app.admin import export
from sessions_app.services import Actor, SessionManager
from tests.admin import read
from tests.factories import add_messages, make_lapsed_session, make_session
from tests.session_list import LIST

FORMULAS = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "  =1", "\uff1d1", '=HYPERLINK("x";"y")']


def table(client, **query):
    response = client.get(f"{LIST}export/", query)
    assert response.status_code == 200
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    return response, list(csv.DictReader(io.StringIO(text, newline="")))


def test_holds_what_the_filters_find_newest_first(operator, agent):
    make_session(account=agent, agent_id="x", title="Refund", user_id="u-1", external_id="T-5")
    make_lapsed_session(account=agent, agent_id="x", title='包裹, "损坏"\n重新发货 🚀')
    make_session(account=agent, agent_id="y")
    (link,) = [link for link in read(operator, LIST, agent="x").links() if "/export/" in link]
    assert link == f"{LIST}export/?agent=x"
    response, rows = table(operator, agent="x")
    assert [row["title"] for row in rows] == ['包裹, "损坏"\n重新发货 🚀', "Refund"]
    assert [row["status"] for row in rows] == ["EXPIRED", "ACTIVE"]
    assert list(rows[1]) == list(export.COLUMNS)
    assert (rows[1]["external_id"], rows[1]["account"], rows[1]["run_count"]) == (
        "T-5",
        "agent",
        "0",
    )
    assert rows[1]["created_at"].endswith("Z")
    assert response["Content-Disposition"] == 'attachment; filename="sessions.csv"'
    assert response["Content-Type"] == "text/csv; charset=utf-8"


@pytest.mark.parametrize("formula", FORMULAS)
def test_runs_no_formula(operator, agent, formula):
    fields = dict.fromkeys(("title", "agent_id", "user_id", "external_id"), formula)
    make_session(account=agent, **fields)
    (row,) = table(operator)[1]
    assert {name: row[name] for name in fields} == dict.fromkeys(fields, f"'{formula}")


@pytest.mark.parametrize("text", ["a=1", "a;=1", 'a",=1', "'=1", "1-1"])
def test_leaves_other_text_as_it_is(operator, agent, text):
    make_session(account=agent, title=text)
    response = operator.get(f"{LIST}export/")
    line = b"".join(response.streaming_content).decode().splitlines()[1]
    # In quotes, so that it stays one cell whatever parts the cells.
    assert f'"{text.replace(chr(34), chr(34) * 2)}"' in line
    assert ",0," in line


def test_says_so_when_there_are_more(operator, agent, monkeypatch):
    monkeypatch.setattr(export, "MOST_EXPORTED", 3)
    monkeypatch.setattr(export, "_AT_ONCE", 2)
    made = [make_session(account=agent).pk for _ in range(4)]
    response, rows = table(operator)
    assert [row["session_id"] for row in rows] == made[:0:-1]
    assert "sessions-newest-3.csv" in response["Content-Disposition"]


@pytest.mark.parametrize("query", ["active_from=soon", "metadata=x", "q=%00", "user=%00"])
def test_of_a_bad_filter_holds_nothing(operator, agent, query):
    make_session(account=agent)
    response = operator.get(f"{LIST}export/?{query}")
    assert len(b"".join(response.streaming_content).splitlines()) == 1


def test_holds_nothing_that_was_said(operator, agent):
    manager = SessionManager(Actor.account(agent))
    session = make_session(
        account=agent, metadata={"a": "Geheim"}, working_memory={"goal": "Geheim"}
    )
    add_messages({"role": "user", "content": "Geheim"}, session=session)
    manager.close(session_id=session.pk, reason="Geheim")
    assert "Geheim" not in str(table(operator)[1])


def test_is_offered_to_those_who_may(entered, agent):
    make_session(account=agent)
    assert not [link for link in read(entered("support"), LIST).links() if "/export/" in link]
    assert entered("support").get(f"{LIST}export/").status_code == 403


def test_costs_a_question_for_many_rows(operator, agent, django_assert_max_num_queries):
    for _ in range(12):
        make_session(account=agent)
    with django_assert_max_num_queries(6):
        table(operator)
