from django.db import migrations, models

from sessions_app.sqlite_search import install, remove_triggers


def _on_sqlite(change):
    def changed(apps, schema_editor):
        if schema_editor.connection.vendor == "sqlite":
            change(schema_editor.connection)

    return changed


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0029_compress_quickly")]

    operations = [
        migrations.RunPython(_on_sqlite(remove_triggers), migrations.RunPython.noop),
        migrations.AddField(
            model_name="session",
            name="title_is_said",
            field=models.BooleanField(default=False, editable=False),
        ),
        # At once, and not after all migrations: one of them may be broken off.
        migrations.RunPython(_on_sqlite(install), migrations.RunPython.noop),
    ]
