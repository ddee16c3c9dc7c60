"""The confirm page: what will happen, why it is wanted, and only then the call."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..actors import Actor
from ..console import policy
from ..services.lifecycle import MAX_REASON
from .base import ReadOnlyAdmin, Shown, address
from .keyset import ID
from .operations import Operation, Plan, carry_out

MOST_AT_ONCE = 100
FILTERS = "_changelist_filters"


class ConfirmForm(forms.Form):
    """The reason, and for what cannot be undone a proof that the page has been read."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "Is kept in the lifecycle events, beside your name, for everybody who may see them."
        ),
        error_messages={"required": gettext_lazy("Say why.")},
    )
    typed = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )

    def __init__(self, *args: Any, proof: str | None, proof_label: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.proof = proof
        if proof is None:
            del self.fields["typed"]
        else:
            self.fields["typed"].label = proof_label

    def clean_reason(self) -> str:
        return str(self.cleaned_data["reason"]).replace("\r\n", "\n")

    def clean_typed(self) -> str:
        # A count may be typed as it is shown.
        typed = str(self.cleaned_data["typed"]).strip().replace(",", "")
        if typed != self.proof:
            raise forms.ValidationError(
                _("That is not what is asked for; nothing has been changed."), code="proof"
            )
        return typed


class OperatedAdmin(ReadOnlyAdmin):
    """Adds operations: as actions of the list, as buttons of the page."""

    operations: Sequence[Operation] = ()
    actions = ()
    actions_selection_counter = True

    def may(self, request: HttpRequest, operation: Operation) -> bool:
        """Whoever may not see a thing may not change it either."""
        return self.has_view_permission(request) and request.user.has_perm(operation.permission)

    def permitted(self, request: HttpRequest) -> list[Operation]:
        return [operation for operation in self.operations if self.may(request, operation)]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {
            operation.name: (_as_action(operation), operation.name, operation.action)
            for operation in self.permitted(request)
        }

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        now = timezone.now()
        possible = [each for each in self.permitted(request) if each.fate(obj, now=now).changes]
        return super().page_context(request, obj) | {
            "operations": [
                (operation, f"{self.operation_url(operation)}?id={obj.pk}")
                for operation in possible
            ]
        }

    def get_urls(self) -> list[URLPattern]:
        mine = [
            path(
                f"{operation.name}/",
                self.admin_site.admin_view(partial(self.operate, operation=operation)),
                name=self._url_name(operation.name),
            )
            for operation in self.operations
        ]
        return [*mine, *super().get_urls()]

    def operation_url(self, operation: Operation) -> str:
        return reverse(f"admin:{self._url_name(operation.name)}")

    def caption(self, obj: Any, viewer: object) -> Shown:
        """What tells people more than the id, of what this account may see."""
        return ""

    # --- the two steps ---

    def operate(self, request: HttpRequest, operation: Operation) -> HttpResponseBase:
        """Show the confirm page; do it when that page is sent back with what it asks for."""
        if not self.may(request, operation):
            raise PermissionDenied
        sent = request.method == "POST"
        ids = (request.POST if sent else request.GET).getlist("id")
        known = [pk for pk in ids if ID.fullmatch(pk)]
        return self.confirm_or_nothing(
            request, operation, known, sent=sent, from_list="list" in request.POST
        )

    def confirm_or_nothing(
        self,
        request: HttpRequest,
        operation: Operation,
        ids: Sequence[str],
        *,
        sent: bool = False,
        from_list: bool = True,
    ) -> HttpResponseBase:
        objects = self.chosen(request, ids)
        if not objects:
            messages.warning(request, _("Nothing to do: none of what was chosen is there."))
            return HttpResponseRedirect(self.list_url(request))
        return self.confirm(request, operation, objects, sent=sent, from_list=from_list)

    def ask(
        self, request: HttpRequest, operation: Operation, queryset: QuerySet
    ) -> HttpResponseBase | None:
        """The first step, from the list."""
        ids = list(queryset.order_by().values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
        if len(ids) > MOST_AT_ONCE:
            text = ngettext("At most %d at once.", "At most %d at once.", MOST_AT_ONCE)
            messages.error(request, text % MOST_AT_ONCE)
            return None
        return self.confirm(
            request, operation, self.chosen(request, ids), sent=False, from_list=True
        )

    def chosen(self, request: HttpRequest, ids: Sequence[str]) -> list[Any]:
        found = self.get_queryset(request).filter(pk__in=ids[:MOST_AT_ONCE])
        return list(found.defer(*self.heavy).order_by("pk"))

    def confirm(
        self,
        request: HttpRequest,
        operation: Operation,
        objects: Sequence[Any],
        *,
        sent: bool,
        from_list: bool,
    ) -> HttpResponseBase:
        plan = Plan(operation, objects, now=timezone.now())
        proof, proof_label = _proof(operation, plan)
        data = request.POST if sent else None
        form = ConfirmForm(data, proof=proof, proof_label=proof_label)
        if form.is_valid():
            self.carry_out(request, operation, objects, reason=form.cleaned_data["reason"])
            return HttpResponseRedirect(
                self.list_url(request) if from_list else self.page_url(objects[0])
            )
        return self.confirm_page(request, operation, plan, form, from_list=from_list)

    def carry_out(
        self, request: HttpRequest, operation: Operation, objects: Sequence[Any], *, reason: str
    ) -> None:
        actor = Actor.operator(request.user)  # type: ignore[arg-type]
        outcome = carry_out(operation, actor, objects, reason=reason, now=timezone.now())
        outcome.tell(request, operation)

    def confirm_page(
        self,
        request: HttpRequest,
        operation: Operation,
        plan: Any,
        form: ConfirmForm,
        *,
        from_list: bool,
        more: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        """``plan``: a `Plan`, or what says the same of others; ``more`` goes to the template."""
        filters = _filters(request)
        back = self.list_url(request) if from_list else self.page_url(plan.fates[0][0])
        page = TemplateResponse(
            request,
            "console/confirm.html",
            {
                **self.admin_site.each_context(request),
                "title": operation.action if from_list else operation.label,
                "opts": self.opts,
                "operation": operation,
                "plan": plan,
                "rows": [
                    (self.page_url(obj), obj.pk, self.caption(obj, request.user), fate)
                    for obj, fate in plan.fates
                ],
                "form": form,
                "action_url": self.operation_url(operation),
                "from_list": from_list,
                "filters": filters,
                "back": back,
                **(more or {}),
            },
        )
        return policy.apply(policy.OWN_PAGE, page)

    def page_url(self, obj: Any) -> str:
        return address(self._url_name("change"), obj.pk)

    def list_url(self, request: HttpRequest) -> str:
        """The list as it was filtered when the operation was chosen."""
        whole = reverse(f"admin:{self._url_name('changelist')}")
        filters = _filters(request)
        return f"{whole}?{filters}" if filters else whole


def _as_action(operation: Operation) -> Callable[..., HttpResponseBase | None]:
    def action(
        admin: OperatedAdmin, request: HttpRequest, queryset: QuerySet
    ) -> HttpResponseBase | None:
        return admin.ask(request, operation, queryset)

    return action


def _filters(request: HttpRequest) -> str:
    """Of the list where it was chosen; written anew, so that only a query string comes of it."""
    given = request.POST.get(FILTERS)
    if given is not None:
        return QueryDict(given).urlencode()
    return "" if "id" in request.GET else request.GET.urlencode()


def _proof(operation: Operation, plan: Plan) -> tuple[str | None, str]:
    """What must be typed: the id of the one, or the count of many."""
    if not operation.irreversible or not plan.changing:
        return None, ""
    if len(plan.fates) == 1:
        return str(plan.changing[0].pk), _("Type the id to go on")
    return str(len(plan.changing)), _("Type how many will be deleted to go on")
