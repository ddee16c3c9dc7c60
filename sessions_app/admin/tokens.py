"""Access tokens: who has one, a new one that is shown once, and revoking.

A token's digest is its primary key and stays inside: pages and addresses name a token by its first
characters, which are no secret that opens anything.
"""

import secrets
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import display
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, re_path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from knox.settings import CONSTANTS

from ..console import policy, values
from ..errors import DossierError
from ..models import AccessToken
from ..services.tokens import issue_token
from . import base, filters
from .base import ReadOnlyAdmin, Shown

_MOST_SUGGESTED = 100
_FORM_KEY = "access_token_form"
_KEY = rf"(?P<key>[0-9a-f]{{{CONSTANTS.TOKEN_KEY_LENGTH}}})"


class TokenForm(forms.Form):
    account = forms.CharField(
        label=gettext_lazy("Account"),
        max_length=150,
        widget=forms.TextInput(attrs={"list": "accounts", "autocomplete": "off"}),
        help_text=gettext_lazy(
            "The account whose sessions the token opens. It may use the API from then on."
        ),
    )
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=255,
        help_text=gettext_lazy("Where the token is used, so that you know later what to revoke."),
    )
    expires = forms.DateField(
        label=gettext_lazy("Last day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=gettext_lazy("Empty: the token works until it is revoked."),
    )

    def clean_account(self) -> User:
        account = User.objects.filter(username=self.cleaned_data["account"]).first()
        if account is None:
            raise forms.ValidationError(_("There is no account of this name."), code="unknown")
        if not account.is_active:
            raise forms.ValidationError(_("This account is not active."), code="inactive")
        return account

    def clean_expires(self) -> datetime | None:
        """The end of that day, in the server's time zone."""
        day: date | None = self.cleaned_data["expires"]
        if day is None:
            return None
        if not timezone.localdate() <= day < date.max:
            raise forms.ValidationError(_("This day has passed."), code="past")
        return timezone.make_aware(datetime.combine(day + timedelta(days=1), time.min))


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnlyAdmin):
    change_list_template = "console/tokens/list.html"
    ordering = ("-created",)
    list_select_related = ("user",)
    list_display_links = None
    heavy = ("user__password",)
    search_help_text = gettext_lazy("Account or name")
    ids = ("token_key", "name", "user__username")

    list_display = ("name_cell", "account", "start", "made", "used", "end", "revoke_link")
    list_filter = (filters.TokenAccountFilter,)
    fieldsets = ((None, {"fields": ("name_line", "account", "start", "made", "used", "end")}),)

    name_cell = base.cell_field("name", gettext_lazy("name"))
    name_line = base.text_field("name", gettext_lazy("name"))
    made = base.time_field("created", gettext_lazy("created at"))
    used = base.time_field("last_used_at", gettext_lazy("last used"))

    @display(description=gettext_lazy("account"))
    def account(self, obj: AccessToken) -> Shown:
        return values.cell(obj.user.get_username())

    @display(description=gettext_lazy("begins with"))
    def start(self, obj: AccessToken) -> Shown:
        return format_html('<span class="id">{}…</span>', obj.token_key)

    @display(description=gettext_lazy("valid until"))
    def end(self, obj: AccessToken) -> Shown:
        if obj.expiry is None:
            return _("until revoked")
        until = values.moment(obj.expiry)
        if obj.expiry <= timezone.now():
            return format_html("{} {}", until, values.badge("expired", _("Expired")))
        return until

    @display(description="")
    def revoke_link(self, obj: AccessToken) -> Shown:
        address = reverse("admin:sessions_app_accesstoken_revoke", args=[obj.token_key])
        name = values.visible(obj.name)
        return format_html('<a href="{}">{}</a>', address, _("Revoke %(name)s") % {"name": name})

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        return super().page_context(request, obj) | {"copied": None}

    # --- who: Django's own permissions of the model, which no group of ours has ---

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sessions_app.add_accesstoken")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("sessions_app.delete_accesstoken")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessToken]:
        return super().get_queryset(request).select_related("user")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> AccessToken | None:
        return self.get_queryset(request).filter(token_key=object_id).first()

    def get_urls(self) -> list[URLPattern]:
        """Of Django's addresses only those that name no digest."""
        view = self.admin_site.admin_view
        name = "sessions_app_accesstoken"
        change = _KEY.replace("key", "object_id")
        return [
            path("", view(self.changelist_view), name=f"{name}_changelist"),
            path("add/", view(self.create), name=f"{name}_add"),
            re_path(rf"^{change}/change/$", view(self.change_view), name=f"{name}_change"),
            re_path(rf"^{_KEY}/revoke/$", view(self.revoke), name=f"{name}_revoke"),
        ]

    # --- create ---

    def create(self, request: HttpRequest) -> HttpResponseBase:
        """Make a token; the answer to the form is the only page that ever shows it.

        The form works once, so that loading that page again makes no second token.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and not _is_first_time(request):
            messages.warning(request, _("This form has been used. A token is shown only once."))
            return HttpResponseRedirect(reverse("admin:sessions_app_accesstoken_changelist"))
        if form.is_valid() and (token := self._issue(request, form)):
            return self._page(request, "token_created", title=_("New access token"), token=token)
        request.session[_FORM_KEY] = secrets.token_urlsafe(16)
        return self._page(
            request,
            "create_token",
            title=_("Create access token"),
            form=form,
            form_key=request.session[_FORM_KEY],
            accounts=User.objects.filter(is_active=True).order_by("username")[:_MOST_SUGGESTED],
        )

    def _issue(self, request: HttpRequest, form: TokenForm) -> str | None:
        given = form.cleaned_data
        try:
            token = issue_token(
                account=given["account"], name=given["name"], expires_at=given["expires"]
            )
        except DossierError as error:
            form.add_error(None, error.detail)
            return None
        self._log(request, token[: CONSTANTS.TOKEN_KEY_LENGTH], given["name"], ADDITION)
        return token

    # --- revoke ---

    def revoke(self, request: HttpRequest, key: str) -> HttpResponseBase:
        """Delete a token, after a question; from then on it opens nothing."""
        if not self.has_delete_permission(request):
            raise PermissionDenied
        token = self.get_object(request, key)
        if token is None:
            raise Http404
        name = values.visible(token.name)
        if request.method != "POST":
            return self._page(
                request,
                "revoke_token",
                title=_("Revoke access token"),
                name=name,
                account=token.user.get_username(),
            )
        token.delete()
        self._log(request, key, name, DELETION)
        messages.success(request, _("The token “%(name)s” was revoked.") % {"name": name})
        return HttpResponseRedirect(reverse("admin:sessions_app_accesstoken_changelist"))

    def _log(self, request: HttpRequest, key: str, name: str, flag: int) -> None:
        LogEntry.objects.create(
            user_id=str(request.user.pk),
            content_type=ContentType.objects.get_for_model(AccessToken),
            object_id=key,
            object_repr=name[:200],
            action_flag=flag,
        )

    def _page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        page = TemplateResponse(
            request,
            f"console/tokens/{template}.html",
            {**self.admin_site.each_context(request), "opts": self.opts, **context},
        )
        return policy.apply(policy.OWN_PAGE, page)


def _is_first_time(request: HttpRequest) -> bool:
    expected = request.session.pop(_FORM_KEY, None)
    return expected is not None and request.POST.get("form_key") == expected
