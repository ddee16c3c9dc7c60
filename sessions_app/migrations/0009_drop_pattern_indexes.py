"""PostgreSQL only: an index for LIKE beside every index of a text column, which Django makes unasked.

No query uses them, and an append had to write a dozen of them.
"""

from django.db import migrations

_PATTERN_INDEXES = """
SELECT indexname FROM pg_indexes
WHERE schemaname = current_schema() AND indexname LIKE '%%\\_like'
  AND (tablename LIKE 'sessions\\_app\\_%%' OR tablename LIKE 'runs\\_app\\_%%')
"""


def drop(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_PATTERN_INDEXES)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0008_index_parents_where_there_are_some"),
        ("runs_app", "0002_session_of_run"),
    ]

    operations = [migrations.RunPython(drop, migrations.RunPython.noop)]
