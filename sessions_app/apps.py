from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SessionsConfig(AppConfig):
    name = "sessions_app"
    verbose_name = _("Agent sessions")
    default_auto_field = "django.db.models.BigAutoField"
