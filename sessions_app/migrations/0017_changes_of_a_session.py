import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0016_moves_of_many_sessions")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="added_version",
            field=models.BigIntegerField(null=True),
        ),
        migrations.CreateModel(
            name="ChangeNote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.BigIntegerField()),
                (
                    "subject",
                    models.CharField(
                        choices=[
                            ("session", "Session"),
                            ("run", "Run"),
                            ("tool_call", "Tool call"),
                            ("content", "Content"),
                        ],
                        max_length=9,
                    ),
                ),
                ("subject_id", models.CharField(max_length=31)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="change_notes",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["session", "version"], name="change_note_by_version")
                ],
            },
        ),
    ]
