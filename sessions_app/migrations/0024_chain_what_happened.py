from hashlib import sha256
from itertools import islice

import orjson
from django.db import migrations

from sessions_app.append_only import removing

# What a digest holds, as it was when the chains began.
_EVENT = (
    "event_id",
    "session_id",
    "sequence",
    "subject",
    "subject_id",
    "from_status",
    "to_status",
    "actor_type",
    "actor_id",
    "reason",
    "session_version",
    "created_at",
)
_READ = ("session_id", "sequence", "reader", "page", "read_at")
_AT_ONCE = 2_000


def chain_what_happened(apps, schema_editor):
    for statement in removing(schema_editor.connection.vendor):
        schema_editor.execute(statement)
    _chain_events(apps, schema_editor.connection)
    _chain_reads(apps, schema_editor.connection)


def _chain_events(apps, connection):
    model, session = _models(apps, connection, "SessionEvent", "Session")
    ends = {}
    for rows in _portions(model.order_by("session_id", "sequence")):
        for row in rows:
            previous = ends.get(row.session_id)
            row.digest = ends[row.session_id] = _link(previous, row, _EVENT)
        _store(connection, model, rows, ("digest",))
        ends = _store_ends(connection, session, ends, rows[-1].session_id)
    _store_ends(connection, session, ends, None)


def _store_ends(connection, session, ends, unfinished):
    """Store those of sessions that are done; the others go on in the next portion."""
    done = [(digest, pk) for pk, digest in ends.items() if pk != unfinished]
    table = session.model._meta.db_table
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table} SET event_digest = %s WHERE session_id = %s", done)
    return {pk: digest for pk, digest in ends.items() if pk == unfinished}


def _chain_reads(apps, connection):
    model, ending = _models(apps, connection, "ContentRead", "ReadChain")
    ends = {}
    for rows in _portions(model.order_by("session_id", "id")):
        for row in rows:
            count, previous = ends.get(row.session_id, (0, None))
            row.sequence = count + 1
            row.digest = _link(previous, row, _READ)
            ends[row.session_id] = row.sequence, row.digest
        _store(connection, model, rows, ("sequence", "digest"))
    new = (
        ending.model(session_id=pk, count=count, digest=digest)
        for pk, (count, digest) in ends.items()
    )
    while portion := list(islice(new, _AT_ONCE)):
        ending.bulk_create(portion)


def _models(apps, connection, *names):
    models = (apps.get_model("sessions_app", name) for name in names)
    return [model.objects.using(connection.alias) for model in models]


def _portions(ordered):
    """Read behind what was stored: SQLite's cursors do not outlive a write."""
    first, second = ordered.query.order_by
    found = ordered
    while rows := list(found[:_AT_ONCE]):
        yield rows
        last, number = (getattr(rows[-1], name) for name in (first, second))
        found = ordered.filter(**{f"{first}__gte": last}).exclude(
            **{first: last, f"{second}__lte": number}
        )


def _link(previous, row, names):
    values = (previous, *(getattr(row, name) for name in names))
    return sha256(orjson.dumps(values)).hexdigest()


def _store(connection, objects, rows, names):
    table, key = objects.model._meta.db_table, objects.model._meta.pk.column
    changes = ", ".join(f"{name} = %s" for name in names)
    values = [[*(getattr(row, name) for name in names), row.pk] for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table} SET {changes} WHERE {key} = %s", values)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0023_chains")]

    operations = [migrations.RunPython(chain_what_happened, migrations.RunPython.noop)]
