"""The rights that open something in the console or the API, in words.

Django has four more for each model; those that nothing asks for are not offered.
"""

from django.contrib.auth.models import Permission
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

RIGHTS = {
    "sessions_app.view_session": _("See sessions"),
    "sessions_app.view_message": _("See messages"),
    "sessions_app.view_toolcall": _("See tool calls"),
    "sessions_app.view_workingmemoryrevision": _("See working memory"),
    "sessions_app.view_sessionevent": _("See lifecycle events"),
    "runs_app.view_run": _("See runs"),
    "sessions_app.read_content": _("Read what sessions contain"),
    "sessions_app.close_session": _("Close sessions"),
    "sessions_app.expire_session": _("Expire sessions"),
    "sessions_app.resume_session": _("Resume sessions"),
    "sessions_app.delete_session": _("Delete sessions"),
    "sessions_app.export_session": _("Download lists of sessions"),
    "sessions_app.change_toolcall": _("Settle tool calls"),
    "runs_app.change_run": _("Cancel runs"),
    "sessions_app.view_contentread": _("See who read what"),
    "sessions_app.view_accesstoken": _("See access tokens"),
    "sessions_app.add_accesstoken": _("Create access tokens"),
    "sessions_app.delete_accesstoken": _("Revoke access tokens"),
    "auth.view_user": _("See accounts"),
    "auth.add_user": _("Create accounts"),
    "auth.change_user": _("Change accounts"),
    "auth.delete_user": _("Delete accounts"),
    "auth.view_group": _("See groups"),
    "auth.add_group": _("Create groups"),
    "auth.change_group": _("Change groups"),
    "auth.delete_group": _("Delete groups"),
    "sessions_app.use_api": _("Use the REST API"),
    "sessions_app.view_all_sessions": _("Read every account's sessions over the API"),
}


def offered() -> QuerySet[Permission]:
    wanted = Q(pk__in=[])
    for name in RIGHTS:
        label, codename = name.split(".")
        wanted |= Q(content_type__app_label=label, codename=codename)
    return Permission.objects.filter(wanted).select_related("content_type")


def name_of(permission: Permission) -> str:
    return str(RIGHTS[f"{permission.content_type.app_label}.{permission.codename}"])
