"""Of the titles that are stored, those are found that a user's message gave: all messages of users
are gone through, in batches by the key, as in 0021; a million of them take a minute or two.

A fork may have its parent's title without the message, which may be gone: in doubt it was said.

Done again, it goes through what is left.
"""

from django.db import migrations

from sessions_app.folding import plain_text
from sessions_app.services.titles import first_words, title_in

_BATCH = 50  # of up to 16 MB each, if clients went to their limit


def mark(apps, schema_editor):
    Session = apps.get_model("sessions_app", "Session")
    Message = apps.get_model("sessions_app", "Message")
    titled = Session.objects.filter(title_is_said=False).exclude(title=None).exclude(title="")
    titled.exclude(forked_at_sequence=None).update(title_is_said=True)
    spoken = Message.objects.filter(role="user", session__in=titled).exclude(text="")
    rows = spoken.order_by("pk").values_list("pk", "session", "session__title", "body")
    last = ""
    while batch := list(rows.filter(pk__gt=last)[:_BATCH]):
        last = batch[-1][0]
        for _, session, title, body in batch:
            if title in (title_in(body.value), _imported(body.value)):
                Session.objects.filter(pk=session, title=title).update(title_is_said=True)


def _imported(body):
    """The title that an import of a transcript made of a message."""
    return first_words(plain_text(body.get("content")))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sessions_app", "0030_title_is_said")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
