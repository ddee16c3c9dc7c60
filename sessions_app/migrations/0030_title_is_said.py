from django.db import migrations, models

from sessions_app.sqlite_search import remove_triggers


def make_way(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        remove_triggers(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0029_compress_quickly")]

    operations = [
        migrations.RunPython(make_way, migrations.RunPython.noop),
        migrations.AddField(
            model_name="session",
            name="title_is_said",
            field=models.BooleanField(default=False, editable=False),
        ),
    ]
