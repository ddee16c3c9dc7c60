import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sessions_app.fields
from sessions_app.sqlite_search import install

# Among an account's newest texts a common word is looked for. Entries of some kilobytes stay in one
# piece beside their row: to look through them costs little. What is written waits in a list that
# every search reads, so it is kept short.
_POSTGRESQL = """
ALTER TABLE sessions_app_searchentry SET (toast_tuple_target = 8160);
CREATE INDEX search_by_account ON sessions_app_searchentry (account_id, id);
CREATE INDEX search_terms ON sessions_app_searchentry USING gin (terms)
    WITH (gin_pending_list_limit = 1024)
"""


def make_index(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(_POSTGRESQL)
    else:
        install(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0019_compactions_and_superseded_calls"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SearchEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("message", "Message"),
                            ("session", "Session"),
                            ("tool_call", "Tool Call"),
                            ("working_memory", "Memory"),
                        ],
                        max_length=14,
                    ),
                ),
                ("subject_id", models.CharField(max_length=31)),
                ("terms", sessions_app.fields.TermsField()),
                (
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="search_entries",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        models.F("session"),
                        models.F("subject_id"),
                        models.F("kind"),
                        name="search_subject_unique",
                    )
                ],
            },
        ),
        migrations.RunPython(make_index, migrations.RunPython.noop),
    ]
