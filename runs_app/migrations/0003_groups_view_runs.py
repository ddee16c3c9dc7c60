from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations


def let_groups_view_runs(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations; here they are needed before.
    create_permissions(installed.get_app_config("runs_app"), verbosity=0, using=using, apps=apps)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    view = permissions.get(content_type__app_label="runs_app", codename="view_run")
    groups = apps.get_model("auth", "Group").objects.using(using)
    for group in groups.filter(name__in=["support", "operators"]):
        group.permissions.add(view)


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0002_session_of_run"),
        ("sessions_app", "0002_groups"),
    ]

    operations = [migrations.RunPython(let_groups_view_runs, migrations.RunPython.noop)]
