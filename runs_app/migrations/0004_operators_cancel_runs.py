from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations


def let_operators_cancel(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations; here it is needed before.
    create_permissions(installed.get_app_config("runs_app"), verbosity=0, using=using, apps=apps)
    change = (
        apps.get_model("auth", "Permission")
        .objects.using(using)
        .get(content_type__app_label="runs_app", codename="change_run")
    )
    for group in apps.get_model("auth", "Group").objects.using(using).filter(name="operators"):
        group.permissions.add(change)


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0003_groups_view_runs")]

    operations = [migrations.RunPython(let_operators_cancel, migrations.RunPython.noop)]
