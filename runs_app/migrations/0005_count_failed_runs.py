from collections import defaultdict

from django.db import migrations
from django.db.models import Count

AT_ONCE = 500


def count(apps, schema_editor):
    failed = apps.get_model("runs_app", "Run").objects.filter(status="FAILED").order_by()
    sessions = apps.get_model("sessions_app", "Session").objects
    having = defaultdict(list)
    for key, number in failed.values_list("session").annotate(number=Count("pk")).iterator():
        having[number].append(key)
    for number, keys in having.items():
        for start in range(0, len(keys), AT_ONCE):
            some = sessions.filter(pk__in=keys[start : start + AT_ONCE])
            some.update(failed_run_count=number)


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0004_operators_cancel_runs"),
        ("sessions_app", "0014_count_failed_runs"),
    ]

    operations = [migrations.RunPython(count, migrations.RunPython.noop)]
