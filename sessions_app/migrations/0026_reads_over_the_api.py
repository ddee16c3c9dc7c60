from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0025_append_only")]

    operations = [
        migrations.AlterField(
            model_name="contentread",
            name="page",
            field=models.CharField(
                choices=[
                    ("transcript", "Transcript"),
                    ("memory", "Working memory"),
                    ("tools", "Tool calls"),
                    ("runs", "Runs"),
                    ("raw", "Raw data"),
                    ("api", "REST API"),
                ],
                max_length=10,
                verbose_name="page",
            ),
        ),
    ]
