"""What migrations make of rows that were there before them."""

from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from runs_app.management.demo import seed
from sessions_app.models import Message, Session
from sessions_app.services.forking import NewFork
from tests.domain import user

pytestmark = pytest.mark.django_db


def test_failed_runs_of_before_are_counted():
    list(seed(sessions=60, seed=4, now=timezone.now()))
    living = Session.objects.exclude(status="DELETED").order_by("pk")
    expected = list(living.values_list("pk", "failed_run_count"))
    assert {count for _pk, count in expected} > {0}
    Session.objects.update(failed_run_count=0)
    import_module("runs_app.migrations.0005_count_failed_runs").count(apps, None)
    assert list(living.values_list("pk", "failed_run_count")) == expected


def test_removed_messages_of_before_were_added_with_the_one_before_them(desk):
    session_id = desk.open()
    desk.append(session_id, user())
    desk.append(session_id, user(), user())
    desk.append(session_id, user())
    for sequence in (1, 3):
        desk.sessions.remove_message(session_id=session_id, sequence=sequence)
    messages = Message.objects.order_by("sequence").values_list("added_version", flat=True)
    assert list(messages) == [2, None, 3, None]
    Message.objects.update(added_version=None)
    name = "sessions_app.migrations.0018_added_versions_of_removed_messages"
    import_module(name).recover(apps, None)
    assert list(messages.all()) == [1, None, 3, None]


def test_titles_of_before_that_a_user_said_are_found(desk):
    said, given, own = (
        desk.open(title=None, external_id="T-5"),
        desk.open(title="Mend"),
        desk.open(),
    )
    desk.append(said, {"role": "system", "content": "Mend it"}, user("Mend it, please"))
    for session_id in (given, own):
        desk.append(session_id, user("Mend it, please"))
    early = desk.sessions.fork(session_id=said, new=NewFork(at_sequence=1)).pk
    loaded = desk.open(title="Said by a tool", title_is_said=True)
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "Said by a tool"}
    desk.append(loaded, {"role": "assistant", "content": [call]})
    desk.append(loaded, user([result]))
    Session.objects.update(title_is_said=False)
    name = "sessions_app.migrations.0031_mark_titles_that_were_said"
    import_module(name).mark(apps, None)
    found = Session.objects.filter(title_is_said=True)
    assert set(found.values_list("pk", flat=True)) == {said, early, loaded}


def test_items_of_before_are_found_by_their_ids(desk):
    session_id = desk.open()
    items = [
        {"item": {"type": "reasoning", "id": "rs_1", "summary": []}},
        {"role": "assistant", "content": "Hi", "id": "msg_1"},
        {"role": "user", "content": 'It says "id": "x"'},
        {"item": {"type": "function_call", "id": "1", "call_id": "c", "name": "f"}},
    ]
    desk.append(session_id, *items)
    stored = Message.objects.order_by("sequence").values_list("item_id", flat=True)
    expected = ["rs_1", "msg_1", None, None]
    assert list(stored) == expected
    Message.objects.update(item_id=None)
    import_module("sessions_app.migrations.0028_find_stored_items_by_id").name_items(apps, None)
    assert list(stored.all()) == expected
