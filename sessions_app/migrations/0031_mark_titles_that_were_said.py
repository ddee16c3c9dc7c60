"""Of the titles that are stored, those are found that a user's message gave. Each is looked for in
all user messages of its session: a million of them take a minute or two.

A fork may have its parent's title without the message, which may be gone: in doubt it was said.

Done again, it goes through everything, and changes what is left.
"""

from django.db import migrations

from sessions_app.folding import plain_text
from sessions_app.services.titles import first_words, title_in

_SESSIONS, _MESSAGES = 500, 50


def mark(apps, schema_editor):
    Session = apps.get_model("sessions_app", "Session")
    Message = apps.get_model("sessions_app", "Message")
    found = Session.objects.exclude(title=None).exclude(title="").filter(title_is_said=False)
    last = ""
    while rows := list(found.filter(pk__gt=last).order_by("pk")[:_SESSIONS]):
        last = rows[-1].pk
        named = set(_named(Message, {row.pk: row.title for row in rows}))
        named.update(row.pk for row in rows if row.forked_at_sequence is not None)
        Session.objects.filter(pk__in=named).update(title_is_said=True)


def _named(Message, titles):
    """The sessions that one of their user messages has named."""
    messages = Message.objects.filter(session__in=titles, role="user").exclude(text="")
    for session, body in messages.values_list("session", "body").iterator(chunk_size=_MESSAGES):
        if titles[session] in (title_in(body.value), _imported(body.value)):
            yield session


def _imported(body):
    """The title that an import of a transcript made of a message."""
    return first_words(plain_text(body.get("content")))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sessions_app", "0030_title_is_said")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
