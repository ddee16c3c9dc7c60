from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class SessionsConfig(AppConfig):
    name = "sessions_app"
    verbose_name = _("Agent sessions")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        connection_created.connect(_on_connection, dispatch_uid="search function")
        post_migrate.connect(_on_migration, sender=self, dispatch_uid="triggers")


def _on_connection(connection: Any, **_more: Any) -> None:
    from .sqlite_search import add_function

    if connection.vendor == "sqlite":
        add_function(connection)


def _on_migration(using: str, plan: Any = (), **_more: Any) -> None:
    from .append_only import install as forbid_changes
    from .models import SearchEntry
    from .sqlite_search import install

    connection = connections[using]
    made = SearchEntry._meta.db_table in connection.introspection.table_names()
    if connection.vendor == "sqlite" and made:
        install(connection)
        forbid_changes(connection)
