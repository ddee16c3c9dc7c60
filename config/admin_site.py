from django.contrib.admin.apps import AdminConfig


class ConsoleConfig(AdminConfig):
    """Django's admin with our site in place of its own."""

    default = False
    default_site = "sessions_app.console.site.ConsoleSite"
