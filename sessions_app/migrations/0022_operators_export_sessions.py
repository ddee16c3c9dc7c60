from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations


def give_right(apps, schema_editor):
    using = schema_editor.connection.alias
    # Django makes permissions after all migrations; here one is needed before.
    app = installed.get_app_config("sessions_app")
    create_permissions(app, verbosity=0, using=using, apps=apps)
    export = (
        apps.get_model("auth", "Permission")
        .objects.using(using)
        .get(content_type__app_label="sessions_app", codename="export_session")
    )
    for group in apps.get_model("auth", "Group").objects.using(using).filter(name="operators"):
        group.permissions.add(export)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0021_index_what_is_stored")]

    operations = [
        migrations.AlterModelOptions(
            name="session",
            options={
                "permissions": [
                    ("use_api", "May use the REST API"),
                    ("view_all_sessions", "May read every account's sessions over the API"),
                    ("read_content", "May read what sessions contain"),
                    ("close_session", "May close sessions"),
                    ("expire_session", "May expire sessions"),
                    ("resume_session", "May resume sessions"),
                    ("export_session", "May download lists of sessions"),
                ],
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
            },
        ),
        migrations.RunPython(give_right, migrations.RunPython.noop),
    ]
