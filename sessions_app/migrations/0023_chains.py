import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0022_operators_export_sessions")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="event_digest",
            # Null, so that SQLite makes no new table: triggers of the search hold on to this one.
            field=models.CharField(editable=False, max_length=64, null=True),
        ),
        migrations.AddField(
            model_name="sessionevent",
            name="digest",
            field=models.CharField(default="", editable=False, max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="contentread",
            name="sequence",
            field=models.BigIntegerField(default=0, verbose_name="sequence"),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="contentread",
            name="digest",
            field=models.CharField(default="", editable=False, max_length=64),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="ReadChain",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="read_chain",
                        serialize=False,
                        to="sessions_app.session",
                    ),
                ),
                ("count", models.BigIntegerField(default=0)),
                ("digest", models.CharField(max_length=64, null=True)),
            ],
            options={"default_permissions": ()},
        ),
    ]
