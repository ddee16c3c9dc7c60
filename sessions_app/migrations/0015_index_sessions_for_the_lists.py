from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0014_count_failed_runs")]

    operations = [
        migrations.RemoveIndex(model_name="session", name="session_unanswered"),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                fields=["-session_id"],
                name="session_unanswered",
                condition=Q(open_tool_call_count__gt=0),
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                fields=["-session_id"],
                name="session_in_trouble",
                condition=Q(status="ACTIVE")
                & (
                    Q(newest_run_status="FAILED")
                    | Q(newest_run_status="INTERRUPTED")
                    | Q(newest_run_status="WAITING")
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                fields=["-session_id"],
                name="session_with_failed_run",
                condition=Q(failed_run_count__gt=0),
            ),
        ),
    ]
