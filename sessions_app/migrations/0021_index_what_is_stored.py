"""What was stored before there was a search is indexed, in batches.

Each batch is a transaction of its own. Done again, it goes through everything, and adds what is
missing.
"""

from itertools import islice

from django.db import migrations
from django.db.models import F

from sessions_app.folding import call_text, folded_text, message_text, values_in
from sessions_app.terms import index_terms

_BATCH = 500


def index_all(apps, schema_editor):
    Entry = apps.get_model("sessions_app", "SearchEntry")
    sources = (_sessions, _memories, _calls, _messages)
    for source in sources:
        rows = source(apps)
        while batch := list(islice(rows, _BATCH)):
            entries = [
                Entry(
                    account_id=account,
                    session_id=session,
                    kind=kind,
                    subject_id=subject,
                    terms=index_terms(folded),
                )
                for account, session, kind, subject, folded in batch
                if folded
            ]
            Entry.objects.bulk_create(entries, ignore_conflicts=True)


def _in_batches(queryset, *names):
    """By the key, so that nothing is held between two batches: neither rows nor a cursor."""
    last = ""
    while rows := list(queryset.filter(pk__gt=last).order_by("pk").values_list("pk", *names)[:_BATCH]):
        yield from rows
        last = rows[-1][0]


def _sessions(apps):
    Session = apps.get_model("sessions_app", "Session")
    found = Session.objects.exclude(status="DELETED").exclude(search_text="")
    for pk, account, text in _in_batches(found, "account", "search_text"):
        yield account, pk, "session", pk, text


def _memories(apps):
    Session = apps.get_model("sessions_app", "Session")
    found = Session.objects.exclude(status="DELETED").filter(
        memory_revisions__version=F("working_memory_version")
    )
    for pk, account, memory in _in_batches(found, "account", "memory_revisions__memory"):
        text = folded_text("\n".join(values_in(memory.value)))
        yield account, pk, "working_memory", pk, text


def _calls(apps):
    """Those that were recorded by themselves; the others are found by their messages."""
    ToolCall = apps.get_model("sessions_app", "ToolCall")
    found = ToolCall.objects.exclude(session__status="DELETED").filter(message_sequence=None)
    for pk, account, session, name, arguments in _in_batches(
        found, "session__account", "session", "name", "arguments"
    ):
        text = folded_text(call_text(name, arguments.value if arguments else None))
        yield account, session, "tool_call", pk, text


def _messages(apps):
    """Their texts learn of calls and of providers' items."""
    Message = apps.get_model("sessions_app", "Message")
    found = Message.objects.exclude(session__status="DELETED").filter(
        removed_at=None, superseded_at=None
    )
    for pk, account, session, stored, body in _in_batches(
        found, "session__account", "session", "text", "body"
    ):
        text = folded_text(message_text(body.value))
        if text != stored:
            Message.objects.filter(pk=pk).update(text=text)
        yield account, session, "message", pk, text


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sessions_app", "0020_search")]

    operations = [migrations.RunPython(index_all, migrations.RunPython.noop)]
