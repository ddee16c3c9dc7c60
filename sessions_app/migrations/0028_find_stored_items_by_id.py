"""Items that were stored before they were found by their ids, in batches.

Each batch is a transaction of its own. Done again, it goes through what is still without.
"""

import re

from django.db import migrations

_BATCH = 500
# What could be an item's id when this was written.
_PREFIXES = {"message": "msg", "function_call": "fc"}
_NO_STEP = re.compile(r"\.{1,2}|.*/.*", re.DOTALL)


def name_items(apps, schema_editor):
    messages = apps.get_model("sessions_app", "Message").objects
    named = messages.filter(item_id=None, removed_at=None, body__contains='"id":').order_by("pk")
    last = ""
    while rows := list(named.filter(pk__gt=last).values_list("pk", "body")[:_BATCH]):
        for pk, body in rows:
            if item_id := _own_id(body.value):
                messages.filter(pk=pk).update(item_id=item_id)
        last = rows[-1][0]


def _own_id(body):
    item = body.get("item")
    found = body.get("id") if item is None else item.get("id")
    if not isinstance(found, str) or not 0 < len(found) <= 255 or _NO_STEP.fullmatch(found):
        return None
    kind = "message" if item is None else item.get("type")
    return found if found.startswith(_PREFIXES.get(kind, "")) else None


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sessions_app", "0027_ids_of_items")]

    operations = [migrations.RunPython(name_items, migrations.RunPython.noop)]
