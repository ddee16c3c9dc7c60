"""Accounts and groups: Django's own pages, in the skin, without a way up for administrators."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.http import HttpRequest
from django.utils.translation import gettext as _

from ..console.skin import (
    AdminPasswordChangeForm,
    CheckboxList,
    ModelAdmin,
    UserChangeForm,
    UserCreationForm,
)
from . import rights

admin.site.unregister(User)
admin.site.unregister(Group)

# Only who has every right already may give rights of which no group of ours consists.
_FOR_SUPERUSERS = ("is_superuser", "user_permissions")


class _RightsAdmin(ModelAdmin):
    """Groups and permissions as boxes to tick: Django's two lists with arrows between them speak
    no Chinese, and are hard to use without a mouse."""

    filter_horizontal: Any = ()

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Without Django's menu beside the boxes: groups have a page of their own."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_manytomany(
            db_field, request, **kwargs | {"widget": CheckboxList}
        )
        if field is not None:
            field.help_text = ""
            if field.queryset.model is Permission:
                field.queryset, field.label_from_instance = rights.offered(), rights.name_of
        return field


@admin.register(User)
class UserAdmin(_RightsAdmin, DjangoUserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    # What has happened is no choice.
    readonly_fields = ("last_login", "date_joined")

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
class GroupAdmin(_RightsAdmin, DjangoGroupAdmin):  # type: ignore[misc]
    pass


def _may_touch(request: HttpRequest, obj: Any) -> bool:
    """An administrator who could set a superuser's password would be one."""
    return request.user.is_superuser or obj is None or not obj.is_superuser
