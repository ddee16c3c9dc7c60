from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0013_index_sessions_for_the_home_page")]

    operations = [
        migrations.RemoveConstraint(model_name="session", name="session_counters_add_up"),
        migrations.AddField(
            model_name="session",
            name="failed_run_count",
            field=models.BigIntegerField(default=0, verbose_name="failed runs"),
        ),
        migrations.AddConstraint(
            model_name="session",
            constraint=models.CheckConstraint(
                name="session_counters_add_up",
                condition=Q(
                    message_count__gte=0,
                    message_count__lte=F("last_sequence"),
                    open_tool_call_count__gte=0,
                    open_tool_call_count__lte=F("tool_call_count"),
                    failed_run_count__gte=0,
                    failed_run_count__lte=F("run_count"),
                ),
            ),
        ),
    ]
