"""What every page about stored data has in common: it shows, and it changes nothing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin as DjangoModelAdmin
from django.contrib.admin import ShowFacets, display
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import Left
from django.db.models.lookups import Exact
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from ..actors import Actor
from ..console import policy, values
from ..console.skin import ModelAdmin
from ..console.titles import READ_CONTENT
from ..jsontext import JSONText
from ..services.content_reads import record_read
from ..states import ContentPage
from .paging import CappedPaginator

Shown = str | SafeString
Promise = Any  # a lazy translation


class Listing(ChangeList):
    """A list never loads what may be megabytes long (report BIG-01)."""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet:
        heavy = getattr(self.model_admin, "heavy", ())
        return super().get_queryset(request, *args, **kwargs).defer(*heavy)


class ReadOnlyAdmin(ModelAdmin):
    """Lists and pages of stored data for whoever may view it; nobody adds, edits or deletes here.

    ``heavy`` names the columns that lists leave out, ``documents`` the ones that pages shorten and
    offer for download, ``ids`` the columns in which an id is searched by its beginning.
    """

    heavy: tuple[str, ...] = ()
    # What a read of the page is written down as; None: it holds nothing that is said in a session.
    content_page: ContentPage | None = None
    documents: Mapping[str, Callable[[Any], JSONText | str | None]] = {}
    ids: tuple[str, ...] = ()
    in_session: str | None = None  # how rows of one session are ordered

    change_form_template = "console/record.html"
    change_list_template = "console/list.html"
    listing: type[ChangeList] = Listing
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    # Django's, as its list has a plain <select>.
    action_form = ActionForm
    list_per_page = 50
    list_max_show_all = 100
    sortable_by: ClassVar[Any] = ()
    actions: Any = None
    list_select_related: ClassVar[Any] = ()
    empty_value_display = values.NOTHING

    # --- who ---

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def may_read(self, request: HttpRequest) -> bool:
        """What sessions contain is for those who may read it; the rest of a page for all."""
        return self.content_page is None or request.user.has_perm(READ_CONTENT)

    # --- which rows ---

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Each row knows who looks at it: a column is asked for the row alone."""
        listing = super().get_changelist_instance(request)
        for row in listing.result_list:
            row.viewer = request.user
        return listing

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return self.listing

    def get_ordering(self, request: HttpRequest) -> Any:
        if self.in_session and request.GET.get("session"):
            return [self.in_session]
        return super().get_ordering(request)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only what a filter of the page asks for: a lookup by URL could scan any column."""
        named = {getattr(each, "parameter_name", None) for each in self.list_filter}
        return lookup in named.union(*(getattr(each, "bounds", ()) for each in self.list_filter))

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return self.ids

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        return (self.search(queryset, term) if term else queryset), False

    def search(self, queryset: QuerySet, term: str) -> QuerySet:
        """Rows whose id begins with the term."""
        return queryset.filter(beginning_with(self.ids, term))

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        # PostgreSQL cannot even ask for U+0000.
        if "\x00" in object_id:
            return None
        return super().get_object(request, object_id, from_field)

    # --- what is shown ---

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        every = super().get_fieldsets(request, obj)
        if self.may_read(request):
            return every
        content = {f"{name}_text" for name in self.documents}
        left = [
            (title, {**given, "fields": [each for each in given["fields"] if each not in content]})
            for title, given in every
        ]
        return [(title, given) for title, given in left if given["fields"]]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (obj := kwargs.get("obj")) is not None:
            self.note_read(request, obj)
            context |= self.page_context(request, obj) | {"may_read": self.may_read(request)}
        response = super().render_change_form(request, context, *args, **kwargs)
        return policy.apply(policy.OWN_PAGE, response)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The skin keeps the request in the admin, where another thread's would be next to it."""
        response = DjangoModelAdmin.changelist_view(self, request, extra_context)
        return policy.apply(policy.OWN_PAGE, response)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the page of one object shows beside its fields."""
        return {"links": [], "copied": obj.pk}

    def note_read(self, request: HttpRequest, obj: Any) -> None:
        """Who read what a session contains is known afterwards."""
        if self.content_page is not None and self.may_read(request):
            actor = Actor.operator(request.user)  # type: ignore[arg-type]
            record_read(actor=actor, session_id=obj.session_id, page=self.content_page)

    # --- whole values ---

    def get_urls(self) -> list[URLPattern]:
        whole = path(
            "<path:object_id>/download/<slug:name>/",
            self.admin_site.admin_view(self.download),
            name=self._url_name("download"),
        )
        return [whole, *super().get_urls()]

    def download(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """One value, byte for byte as it is stored, as a file that no browser interprets."""
        if not (self.has_view_permission(request) and self.may_read(request)):
            raise PermissionDenied
        obj = self.get_object(request, unquote(object_id))
        value = self.documents[name](obj) if obj and name in self.documents else None
        if value is None:
            raise Http404
        self.note_read(request, obj)
        text = value.text if isinstance(value, JSONText) else value
        return HttpResponse(
            text.encode(),
            content_type="text/plain; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="{obj.pk}-{name}.txt"',
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "sandbox; default-src 'none'",
            },
        )

    def download_url(self, obj: Model, name: str) -> str:
        return reverse(f"admin:{self._url_name('download')}", args=[quote(obj.pk), name])

    def _url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"


def beginning_with(columns: Iterable[str], text: str) -> Q:
    """That one of the columns begins with exactly this text.

    By LEFT and not by LIKE, which folds the case of ASCII letters on SQLite alone.
    """
    wanted = Q(pk__in=[])
    for column in columns:
        wanted |= Q(Exact(Left(column, len(text)), Value(text)))
    return wanted


# --- one column of a model, as a field of a page or a list ---


def text_field(name: str, label: Promise) -> Any:
    return _field(label, lambda _admin, obj: values.line(getattr(obj, name)))


def cell_field(name: str, label: Promise) -> Any:
    return _field(label, lambda _admin, obj: values.cell(getattr(obj, name)))


def number_field(name: str, label: Promise) -> Any:
    return _field(label, lambda _admin, obj: values.number(getattr(obj, name)))


def time_field(name: str, label: Promise, *, ordering: str | None = None) -> Any:
    return _field(label, lambda _admin, obj: values.moment(getattr(obj, name)), ordering)


def ago_field(name: str, label: Promise, *, ordering: str | None = None) -> Any:
    return _field(label, lambda _admin, obj: values.ago(getattr(obj, name)), ordering)


def document_field(name: str, label: Promise) -> Any:
    def shown(admin: ReadOnlyAdmin, obj: Any) -> Shown:
        return values.document(admin.documents[name](obj), download=admin.download_url(obj, name))

    return _field(label, shown)


def link_field(name: str, label: Promise, page: str) -> Any:
    """A link to the page of what the column ``name`` has the id of."""

    def shown(_admin: ReadOnlyAdmin, obj: Any) -> Shown:
        return link(page, getattr(obj, name))

    return _field(label, shown)


def link(page: str, pk: str | None) -> Shown:
    if pk is None:
        return values.NOTHING
    return format_html('<a class="id" href="{}">{}</a>', address(page, pk), pk)


def address(page: str, pk: str) -> str:
    """Of the page of one object."""
    return reverse(f"admin:{page}", args=[quote(pk)])


def session_link() -> Any:
    return link_field("session_id", _("session"), "sessions_app_session_change")


def run_link() -> Any:
    return link_field("run_id", _("run"), "runs_app_run_change")


def _field(label: Promise, shown: Callable[[Any, Any], Shown], ordering: str | None = None) -> Any:
    # A function of its own: `display` writes on what it decorates.
    def field(self: ReadOnlyAdmin, obj: Any) -> Shown:
        return shown(self, obj)

    return display(description=label, ordering=ordering)(field)
