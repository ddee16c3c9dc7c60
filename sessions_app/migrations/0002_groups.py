from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = ["session", "message", "toolcall", "workingmemoryrevision", "sessionevent"]
VIEW = [f"view_{model}" for model in VIEWED]
CHANGE_STATE = ["close_session", "expire_session", "resume_session", "delete_session"]
GROUPS = {"agents": ["use_api"], "support": VIEW, "operators": VIEW + CHANGE_STATE}


def make_groups(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations; here they are needed before.
    app = installed.get_app_config("sessions_app")
    create_permissions(app, verbosity=0, using=using, apps=apps)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    for name, codenames in GROUPS.items():
        group, _ = apps.get_model("auth", "Group").objects.using(using).get_or_create(name=name)
        found = permissions.filter(content_type__app_label="sessions_app", codename__in=codenames)
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    # Backwards the groups stay: people are in them by then.
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
