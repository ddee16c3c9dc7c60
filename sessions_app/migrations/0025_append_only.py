from django.db import migrations, models

from sessions_app import append_only


def forbid_changes(apps, schema_editor):
    append_only.install(schema_editor.connection)


def allow_changes(apps, schema_editor):
    for statement in append_only.removing(schema_editor.connection.vendor):
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0024_chain_what_happened")]

    operations = [
        migrations.AddConstraint(
            model_name="contentread",
            constraint=models.UniqueConstraint(
                models.F("session"), models.F("sequence"), name="content_read_sequence_unique"
            ),
        ),
        migrations.RunPython(forbid_changes, allow_changes),
    ]
