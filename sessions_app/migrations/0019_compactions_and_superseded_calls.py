from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0018_added_versions_of_removed_messages")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="through_sequence",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["session", "-sequence"],
                name="message_compaction",
                condition=Q(through_sequence__isnull=False),
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="compaction_sequence",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="session",
            name="compacted_through",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="superseded_at",
            field=models.DateTimeField(null=True, verbose_name="superseded at"),
        ),
    ]
