"""Accounts and groups: Django's own pages, in the skin, without a way up for administrators."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.utils.translation import gettext as _

from ..console.skin import AdminPasswordChangeForm, ModelAdmin, UserChangeForm, UserCreationForm

admin.site.unregister(User)
admin.site.unregister(Group)

# Only who has every right already may give rights of which no group of ours consists.
_FOR_SUPERUSERS = ("is_superuser", "user_permissions")


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    # A *user* is whom an agent talks with; who logs in here, or holds a token, is an account.

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        named = {"title": _("Accounts"), "list_name": _("Accounts")}
        return super().changelist_view(request, named | (extra_context or {}))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        title = _("Account") if object_id else _("New account")
        named = {"title": title, "list_name": _("Accounts")}
        return super().changeform_view(request, object_id, form_url, named | (extra_context or {}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fixed = super().get_readonly_fields(request, obj)
        return fixed if request.user.is_superuser else (*fixed, *_FOR_SUPERUSERS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    pass


def _may_touch(request: HttpRequest, obj: Any) -> bool:
    """An administrator who could set a superuser's password would be one."""
    return request.user.is_superuser or obj is None or not obj.is_superuser
