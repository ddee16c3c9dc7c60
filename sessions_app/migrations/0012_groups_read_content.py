from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations

READERS = ["support", "operators"]
ADMINISTER = {
    "auth": ["view_user", "add_user", "change_user", "delete_user", "view_group"],
    "sessions_app": ["view_accesstoken", "add_accesstoken", "delete_accesstoken", "view_contentread"],
}


def give_rights(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations; here they are needed before.
    for label in ADMINISTER:
        app = installed.get_app_config(label)
        create_permissions(app, verbosity=0, using=using, apps=apps)
    groups = apps.get_model("auth", "Group").objects.using(using)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    read = permissions.get(content_type__app_label="sessions_app", codename="read_content")
    for group in groups.filter(name__in=READERS):
        group.permissions.add(read)
    administrators, _ = groups.get_or_create(name="administrators")
    for label, codenames in ADMINISTER.items():
        administrators.permissions.add(
            *permissions.filter(content_type__app_label=label, codename__in=codenames)
        )


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0011_content_reads"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    # Backwards the groups stay: people are in them by then.
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
