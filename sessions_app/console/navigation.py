"""The sidebar: where one can go, and what one must be allowed to do to see it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

Promise = Any  # a lazy translation


class Entry(NamedTuple):
    """A page of the site, by the name of its address. ``permission`` None: for all staff."""

    label: Promise
    icon: str
    """Of console/icons.svg."""
    page: str
    permission: str | None
    own_pages: str = ""
    """Where its pages of our own begin, below the site's root."""


class Section(NamedTuple):
    label: Promise
    entries: Sequence[Entry]


class Link(NamedTuple):
    """An entry for one request."""

    label: Promise
    icon: str
    url: str
    is_current: bool


# Upwards, to runs_app, by names only.
SECTIONS = (
    Section("", [Entry(_("Home"), "home", "index", None)]),
    Section(
        _("Work"),
        [
            Entry(
                _("Sessions"),
                "sessions",
                "sessions_app_session_changelist",
                "sessions_app.view_session",
                own_pages="sessions/",
            ),
            Entry(_("Runs"), "runs", "runs_app_run_changelist", "runs_app.view_run"),
            Entry(
                _("Tool calls"),
                "tools",
                "sessions_app_toolcall_changelist",
                "sessions_app.view_toolcall",
            ),
        ],
    ),
    Section(
        _("Records"),
        [
            Entry(
                _("Messages"),
                "messages",
                "sessions_app_message_changelist",
                "sessions_app.view_message",
            ),
            Entry(
                _("Working memory"),
                "memory",
                "sessions_app_workingmemoryrevision_changelist",
                "sessions_app.view_workingmemoryrevision",
            ),
            Entry(
                _("Events"),
                "events",
                "sessions_app_sessionevent_changelist",
                "sessions_app.view_sessionevent",
            ),
            Entry(
                _("Content reads"),
                "eye",
                "sessions_app_contentread_changelist",
                "sessions_app.view_contentread",
            ),
        ],
    ),
    Section(
        _("Administration"),
        [
            Entry(_("Accounts"), "users", "auth_user_changelist", "auth.view_user"),
            Entry(_("Groups"), "groups", "auth_group_changelist", "auth.view_group"),
            Entry(
                _("Access tokens"),
                "key",
                "sessions_app_accesstoken_changelist",
                "sessions_app.view_accesstoken",
            ),
        ],
    ),
)


def navigation(request: HttpRequest) -> list[tuple[Promise, list[Link]]]:
    """The sections in which the account may see anything."""
    shown = [
        (section.label, [_link(entry, request) for entry in section.entries if may(entry, request)])
        for section in SECTIONS
    ]
    return [(label, links) for label, links in shown if links]


def may(entry: Entry, request: HttpRequest) -> bool:
    return entry.permission is None or request.user.has_perm(entry.permission)


def _link(entry: Entry, request: HttpRequest) -> Link:
    url = reverse(f"admin:{entry.page}")
    exactly = entry.page == "index"
    current = request.path == url if exactly else request.path.startswith(url)
    if entry.own_pages:
        own = reverse("admin:index") + entry.own_pages
        current = current or request.path.startswith(own)
    return Link(entry.label, entry.icon, url, current)
