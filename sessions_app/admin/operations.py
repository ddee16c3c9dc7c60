"""What an operator does to stored data: asked for on a page, then done through a manager."""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from django.contrib import messages
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from .. import errors
from ..actors import Actor
from ..services.bulk import DATABASE_ERROR, INTERNAL_ERROR
from ..states import SessionStatus

Promise = Any  # a lazy translation
Refusal = errors.DossierError | OperationalError | InterfaceError
_MOST_NAMED = 5

_EXPIRED_STAYS = gettext_lazy("expired; it can only be resumed or deleted")
_CLOSED_STAYS = gettext_lazy("closed; it can only be resumed or deleted")

# Refusals in the operator's words: the API's speak of endpoints.
_REFUSALS: dict[type[errors.DossierError], Promise] = {
    errors.NotFound: gettext_lazy("not found"),
    errors.SessionDeleted: gettext_lazy("deleted already"),
    errors.SessionClosed: gettext_lazy("its session is closed"),
    errors.SessionExpired: gettext_lazy("its session has expired"),
    errors.RunEnded: gettext_lazy("ended already"),
    errors.DatabaseBusy: gettext_lazy("the database is busy; try again"),
}
_FAILURES: dict[str, Promise] = {
    DATABASE_ERROR: gettext_lazy("the database refused it; the server's log says more"),
    INTERNAL_ERROR: gettext_lazy("an unexpected error; the server's log says more"),
}
_INVALID_BY_STATUS: dict[str, Promise] = {
    SessionStatus.EXPIRED: _EXPIRED_STAYS,
    SessionStatus.CLOSED: _CLOSED_STAYS,
    "SUCCEEDED": gettext_lazy("answered already"),
    "FAILED": gettext_lazy("answered already"),
    "CANCELLED": gettext_lazy("answered already"),
}


class Fate(NamedTuple):
    """What will become of one object: ``why`` says what keeps it as it is."""

    changes: bool
    why: Promise = ""


class Operation(ABC):
    """One thing that an operator may do; each has a permission and a confirm page of its own."""

    name: ClassVar[str]
    permission: ClassVar[str]
    label: ClassVar[Promise]
    """On the button."""
    action: ClassVar[Promise]
    """In the list of actions."""
    becomes: ClassVar[Promise]
    """Beside each object that will change."""
    note: ClassVar[Promise] = ""
    """What else to know before it is done."""
    irreversible: ClassVar[bool] = False
    will: ClassVar[Promise]
    did: ClassVar[Promise]
    """How many will change, or have changed; a plural with a ``count``."""

    @abstractmethod
    def fate(self, obj: Any, *, now: datetime) -> Fate:
        """What will become of it, if it stays as it is until then."""

    @abstractmethod
    def perform(self, actor: Actor, obj: Any, *, reason: str) -> bool:
        """Do it, by one call of a manager; tell whether anything changed."""

    def consequences(self, objects: Sequence[Any], *, now: datetime) -> list[str]:
        """What changes beside them."""
        return []


class Plan:
    """What a confirm page says: computed anew each time it is shown."""

    def __init__(self, operation: Operation, objects: Sequence[Any], *, now: datetime) -> None:
        self.fates = [(obj, operation.fate(obj, now=now)) for obj in objects]
        self.changing = [obj for obj, fate in self.fates if fate.changes]
        self.will = str(operation.will % {"count": len(self.changing)})
        self.consequences = operation.consequences(self.changing, now=now) if self.changing else []
        reasons = Counter(str(fate.why) for _obj, fate in self.fates if not fate.changes)
        self.staying = [stays(count, why) for why, count in reasons.items()]


class Outcome:
    """What has really happened to each object, for a message that is true."""

    def __init__(self) -> None:
        self.changed = 0
        self.kept: Counter[str] = Counter()
        self.refused: defaultdict[str, list[str]] = defaultdict(list)

    def tell(self, request: HttpRequest, operation: Operation) -> None:
        if self.changed:
            messages.success(request, str(operation.did % {"count": self.changed}))
        for why, count in self.kept.items():
            messages.info(request, stays(count, why))
        for why, ids in self.refused.items():
            messages.error(request, failed(ids, why))


def carry_out(
    operation: Operation, actor: Actor, objects: Iterable[Any], *, reason: str, now: datetime
) -> Outcome:
    """Do it to each object by itself: what one refuses does not stop the others."""
    outcome = Outcome()
    for obj in objects:
        before = operation.fate(obj, now=now)
        try:
            changed = operation.perform(actor, obj, reason=reason)
        except (errors.DossierError, OperationalError, InterfaceError) as error:
            _note_refusal(outcome, obj, before, error)
            continue
        if changed:
            outcome.changed += 1
        else:
            outcome.kept[str(before.why or _("changed by somebody else meanwhile"))] += 1
    return outcome


def _note_refusal(outcome: Outcome, obj: Any, before: Fate, error: Refusal) -> None:
    """What the page had said would stay is no failure."""
    if isinstance(error, errors.DossierError) and not before.changes:
        outcome.kept[str(before.why)] += 1
    else:
        outcome.refused[explain(error)].append(str(obj.pk))


def explain_code(code: str) -> str:
    """Why not, for people, by what a refusal is called."""
    words = {kind.code: why for kind, why in _REFUSALS.items()} | _FAILURES
    return str(words.get(code, code))


def explain(error: Refusal) -> str:
    """Why not, for people."""
    if not isinstance(error, errors.DossierError):
        return str(_REFUSALS[errors.DatabaseBusy])
    if isinstance(error, errors.InvalidTransition):
        status = str(error.data.get("current_status"))
        return str(_INVALID_BY_STATUS.get(status, error.title))
    return str(_REFUSALS.get(type(error), error.detail))


def stays(count: int, why: str) -> str:
    text = ngettext(
        "%(count)d stays as it is: %(why)s.", "%(count)d stay as they are: %(why)s.", count
    )
    return text % {"count": count, "why": why}


def failed(ids: Sequence[str], why: str, *, count: int | None = None) -> str:
    """``count``: how many there are, where only the first are named."""
    number = len(ids) if count is None else count
    text = ngettext(
        "%(count)d could not be changed: %(why)s (%(ids)s).",
        "%(count)d could not be changed: %(why)s (%(ids)s).",
        number,
    )
    named = ", ".join(ids[:_MOST_NAMED]) + (", …" if number > _MOST_NAMED else "")
    return text % {"count": number, "why": why, "ids": named}
