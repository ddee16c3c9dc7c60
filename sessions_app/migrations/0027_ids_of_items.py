from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0026_reads_over_the_api")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="item_id",
            field=models.CharField(editable=False, max_length=255, null=True),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["session", "item_id"],
                name="message_by_item",
                condition=Q(item_id__isnull=False),
            ),
        ),
    ]
