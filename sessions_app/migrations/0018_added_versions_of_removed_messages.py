from django.db import migrations
from django.db.models import OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce


def recover(apps, schema_editor):
    """What added a message that is gone is not known any more: at the latest, what added the next
    one did, and at the earliest, the one before it; so it is said to be that one."""
    messages = apps.get_model("sessions_app", "Message").objects
    gone = Q(removed_at__isnull=False) | Q(superseded_at__isnull=False)
    before = messages.filter(
        session=OuterRef("session"), sequence__lt=OuterRef("sequence")
    ).exclude(gone)
    version = Subquery(before.order_by("-sequence").values("session_version")[:1])
    messages.filter(gone, added_version=None).update(added_version=Coalesce(version, Value(1)))


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0017_changes_of_a_session")]

    operations = [migrations.RunPython(recover, migrations.RunPython.noop)]
