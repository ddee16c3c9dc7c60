"""Every address of the console, with a sample of what each parameter names, and who may go there.

`OPEN_TO` and `TAKES_FROM` are declared and not computed: a page that is new has no line there, and
a test fails until somebody has said for whom it is.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import URLPattern, URLResolver, reverse

from sessions_app.models import AccessToken, BulkMove, ContentRead
from sessions_app.services import Actor, bulk
from sessions_app.services.content_reads import record_read
from sessions_app.states import ContentPage, SessionStatus
from tests.admin import Whole, make_person
from tests.factories import make_token

# "managers" act without reading; see `make_managers`.
STAFF = {"superuser", "operators", "managers", "support", "administrators", "staff"}
WORK = STAFF - {"administrators", "staff"}
READERS = WORK - {"managers"}
ACTORS = WORK - {"support"}
ADMINISTRATORS = {"superuser", "administrators"}
SUPERUSER = {"superuser"}
NOBODY: set[str] = set()
OUTSIDE = ("agent", "nobody")

_STORED = (
    "(sessions_app_(session|message|toolcall|workingmemoryrevision|sessionevent)|runs_app_run)"
)
# The first that fits a name holds.
OPEN_TO = {
    "index|password_change|password_change_done|jsi18n": STAFF,
    "app_list": WORK | ADMINISTRATORS,
    "autocomplete": WORK,
    "view_on_site": NOBODY,
    f"({_STORED}|sessions_app_contentread)_(add|delete)": NOBODY,
    "sessions_app_session_(close|expire|resume|remove|export)": ACTORS,
    "sessions_app_toolcall_settle|runs_app_run_cancel": ACTORS,
    "sessions_app_session_download": WORK,
    "sessions_app_(sessionevent|contentread)_download": NOBODY,
    f"{_STORED}_download": READERS,
    f"{_STORED}_(changelist|change|history)|run|session_record": WORK,
    "session_(text|call_value|news|raw_file)": READERS,
    "session|session_(memory|runs|tools|events|search|raw)|bulk_moves?": WORK,
    "auth_group_(add|delete)": SUPERUSER,
    "auth_(user|group)_.*|sessions_app_(accesstoken|contentread)_.*": ADMINISTRATORS,
}
# Who may send something there; what fits nothing takes nothing.
TAKES_FROM = {
    "index|password_change_done|app_list|jsi18n|autocomplete|.*_(history|export)": None,
    "password_change": STAFF,
    "sessions_app_session_(close|expire|resume|remove)": ACTORS,
    "sessions_app_toolcall_settle|runs_app_run_cancel": ACTORS,
    "bulk_move": ACTORS,
    f"({_STORED})_changelist": WORK,
    "auth_group_(add|change|delete)": SUPERUSER,
    "auth_group_changelist|auth_user_.*|sessions_app_accesstoken_(changelist|add|revoke)": (
        ADMINISTRATORS
    ),
    "sessions_app_contentread_changelist": ADMINISTRATORS,
    ".*_download": None,
}


def allowed(table: dict[str, Any], name: str) -> Any:
    """The roles; None, where what is sent is taken as a question."""
    for pattern, roles in table.items():
        if re.fullmatch(pattern, name):
            return roles
    return NOBODY if table is TAKES_FROM else _unknown(name)


def _unknown(name: str) -> Any:
    raise AssertionError(f"say in tests/admin_pages.py who may open {name}")


def patterns(resolver: Any = None) -> Iterator[URLPattern]:
    found = admin.site.urls[0] if resolver is None else resolver.url_patterns
    for pattern in found:
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern)
        # Before it has no name: what leads to another address.
        elif pattern.name and pattern.name not in {"login", "logout"}:
            yield pattern


def every_address(whole: Whole, agent: User) -> dict[str, str]:
    """By name; each leads to something that is there."""
    make_token(account=agent)
    record_read(
        actor=Actor.operator(make_person("support")),
        session_id=whole.session.pk,
        page=ContentPage.TRANSCRIPT,
    )
    move = bulk.draft(
        actor=Actor.operator(make_person("operators")),
        to=SessionStatus.CLOSED,
        session_ids=[whole.session.pk],
    )
    bulk.confirm(move, reason="because")
    return {
        pattern.name: reverse(f"admin:{pattern.name}", kwargs=_kwargs(pattern, whole, agent))
        + _query(pattern.name, whole)
        for pattern in patterns()
        if pattern.name
    }


def _kwargs(pattern: URLPattern, whole: Whole, agent: User) -> dict[str, Any]:
    given: Any = pattern.pattern
    names = {**given.converters, **given.regex.groupindex}
    return {key: _sample(key, str(pattern.name), whole, agent) for key in names}


def _sample(key: str, name: str, whole: Whole, agent: User) -> Any:
    by_key: dict[str, Any] = {
        "session_id": whole.session.pk,
        "run_id": whole.run.pk,
        "call_id": whole.call.pk,
        "sequence": 1,
        "index": 0,
        "value": "arguments",
        "file": "messages",
        "app_label": "sessions_app",
        "content_type_id": 1,
        "id": agent.pk,
    }
    if key in by_key:
        return by_key[key]
    if key == "bulk_id":
        return BulkMove.objects.get().pk
    if key == "name":
        return _document(name)
    return _object_id(name, whole, agent)


def _document(name: str) -> str:
    documents = {"message": "body", "toolcall": "arguments", "run": "input", "session": "metadata"}
    return documents.get(name.split("_")[-2], "memory")


def _object_id(name: str, whole: Whole, agent: User) -> Any:
    model = name.split("_")[-2] if "password" not in name else "user"
    of_model = {
        "session": whole.session,
        "message": whole.message,
        "toolcall": whole.call,
        "workingmemoryrevision": whole.revision,
        "sessionevent": whole.event,
        "run": whole.run,
        "user": agent,
        "group": Group.objects.get(name="agents"),
        "contentread": ContentRead.objects.get(),
    }
    if model == "accesstoken":
        return AccessToken.objects.get().token_key
    return of_model[model].pk if model in of_model else "1"


def _query(name: str, whole: Whole) -> str:
    ids = {"sessions_app_toolcall_settle": whole.call.pk, "runs_app_run_cancel": whole.run.pk}
    if re.fullmatch("sessions_app_session_(close|expire|resume|remove)", name) or name in ids:
        return f"?id={ids.get(name, whole.session.pk)}"
    asked = {"app_label": "sessions_app", "model_name": "message", "field_name": "session"}
    queries = {"session_search": "?q=Hello", "autocomplete": f"?{urlencode(asked)}"}
    return queries.get(name, "")


def make_managers() -> None:
    """A group of people who act on sessions and runs without reading what was said."""
    managers, _ = Group.objects.get_or_create(name="managers")
    rights = Group.objects.get(name="operators").permissions.exclude(codename="read_content")
    managers.permissions.set(rights)
