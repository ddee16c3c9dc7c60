import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

_STATUSES = [
    ("ACTIVE", "Active"),
    ("CLOSED", "Closed"),
    ("EXPIRED", "Expired"),
    ("DELETED", "Deleted"),
]
_OUTCOMES = [("CHANGED", "Changed"), ("KEPT", "Stays as it is"), ("REFUSED", "Failed")]
_ENDS = [("DONE", "Done"), ("STOPPED", "Stopped"), ("WITHDRAWN", "The right was withdrawn")]


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sessions_app", "0015_index_sessions_for_the_lists"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkMove",
            fields=[
                (
                    "bulk_id",
                    models.CharField(
                        editable=False, max_length=31, primary_key=True, serialize=False
                    ),
                ),
                (
                    "to_status",
                    models.CharField(choices=_STATUSES, max_length=7, verbose_name="to"),
                ),
                ("reason", models.CharField(default="", max_length=1000, verbose_name="reason")),
                ("operator", models.CharField(max_length=255, verbose_name="operator")),
                ("total", models.BigIntegerField()),
                ("staying", models.JSONField(default=dict)),
                ("has_more", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(verbose_name="created at")),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("worked_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("end", models.CharField(choices=_ENDS, max_length=9, null=True)),
                ("stopped_by", models.CharField(default="", max_length=255)),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        fields=["worked_at"],
                        name="bulk_move_unfinished",
                        condition=Q(ended_at__isnull=True),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkTarget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("session_id", models.CharField(max_length=31)),
                ("outcome", models.CharField(choices=_OUTCOMES, max_length=7, null=True)),
                ("why", models.CharField(default="", max_length=40)),
                ("attempts", models.SmallIntegerField(default=0)),
                (
                    "bulk",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="targets",
                        to="sessions_app.bulkmove",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["bulk", "outcome", "id"], name="bulk_target_by_outcome"),
                    models.Index(fields=["session_id"], name="bulk_target_of_session"),
                ],
            },
        ),
    ]
