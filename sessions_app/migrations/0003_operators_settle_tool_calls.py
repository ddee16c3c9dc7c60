from django.contrib.auth.management import create_permissions
from django.apps import apps as installed
from django.db import migrations


def let_operators_settle(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations; here it is needed before.
    app = installed.get_app_config("sessions_app")
    create_permissions(app, verbosity=0, using=using, apps=apps)
    change = (
        apps.get_model("auth", "Permission")
        .objects.using(using)
        .get(content_type__app_label="sessions_app", codename="change_toolcall")
    )
    for group in apps.get_model("auth", "Group").objects.using(using).filter(name="operators"):
        group.permissions.add(change)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0002_groups")]

    operations = [migrations.RunPython(let_operators_settle, migrations.RunPython.noop)]
