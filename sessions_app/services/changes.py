"""What happened in a session, in the order of its versions.

There is no log of it: what a version changed stands for good in the rows that it left. Events,
messages and revisions of the memory carry the version that made them and are numbered in its order,
so that they are read by indexes which are there anyway; of all else there are notes
(`models.ChangeNote`). None of these rows ever goes away or changes its version while the session
lives, so a change keeps its number within its version (`Place`), whoever reads it, and when.

What a change is about is read as it is now: a reader that comes late gets its newest state, and a
later change of it once more.
"""

from collections.abc import Collection
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple, Self

from django.db.models import QuerySet

from ..models import ChangeNote, Message, Session, SessionEvent, WorkingMemoryRevision
from ..prepared import GIVEN_LIMIT, Given, GivenList, Prepared
from ..querysets import AS_ADDED
from ..states import Subject

MEMORY = "memory"  # beside those of `Subject`

_MANY = 500


class Place(NamedTuple):
    """The place of a change: in its version, so many are before it."""

    version: int
    number: int


class Change(NamedTuple):
    """One change, by what it is about. They sort in their order."""

    version: int
    kind: int  # which column of `Reached` its key is in
    key: int
    subject: str
    subject_id: str
    size: int = 0  # of a message, in bytes

    @property
    def is_event(self) -> bool:
        """Whether ``key`` is a lifecycle event's sequence."""
        return self.kind == _EVENT

    @property
    def is_message(self) -> bool:
        """Whether a message was added; ``key`` is its sequence."""
        return self.kind == _SEQUENCE


class Reached(NamedTuple):
    """How far a reader has come: the place of the last change, and what it has read of each table.

    In a version, changes of the tables are in this order.
    """

    place: Place
    event: int = 0
    sequence: int = 0
    revision: int = 0
    note: int = 0

    def by(self, change: Change) -> Self:
        """How far it is with the change after it."""
        is_next = change.version == self.place.version
        place = Place(change.version, self.place.number + 1 if is_next else 0)
        return self._replace(place=place, **{self._fields[change.kind]: change.key})


_EVENT, _SEQUENCE, _REVISION, _NOTE = range(1, len(Reached._fields))
_BEGINNING = Reached(Place(0, -1))


def current_versions(session_ids: Collection[str]) -> dict[str, int]:
    """The versions of these sessions, at least one, whoever may read them."""
    return dict(_versions.all(ids=session_ids))


def read_changes(session: Session, reached: Reached, *, most: int) -> list[Change]:
    """The next changes, up to the session as it was read: what is newer than that row is left
    alone, so that no version comes before it is complete."""
    given = {"session_id": session.session_id, "limit": most}
    found: list[list[Change]] = []
    if session.event_count > reached.event:
        rows = _events.all(after=reached.event, until=session.event_count, **given)
        found.append([Change(at, _EVENT, key, _about(*on), on[1]) for at, key, *on in rows])
    if session.last_sequence > reached.sequence:
        rows = _messages.all(after=reached.sequence, until=session.last_sequence, **given)
        found.append(
            [
                Change(at, _SEQUENCE, key, Subject.CONTENT, name, size)
                for at, key, name, size in rows
            ]
        )
    if session.working_memory_version > reached.revision:
        rows = _revisions.all(after=reached.revision, until=session.working_memory_version, **given)
        found.append([Change(version, _REVISION, key, MEMORY, "") for version, key in rows])
    rows = _notes.all(
        since=reached.place.version, after=reached.note, until=session.version, **given
    )
    found.append([Change(version, _NOTE, *row) for version, *row in rows])
    return list(islice(merge(*found), most))


def _about(subject: str, subject_id: str) -> str:
    """What an event is about; content that is no message's is the session's."""
    is_whole = subject == Subject.CONTENT and not subject_id.startswith("msg_")
    return Subject.SESSION if is_whole else subject


def reached_after(session: Session, place: Place) -> Reached:
    """How far a reader is that has all up to this place."""
    reached = _before(session, place.version)
    while changes := read_changes(session, reached, most=_MANY):
        for change in changes:
            following = reached.by(change)
            if following.place > place:
                return reached
            reached = following
    return reached


def _before(session: Session, version: int) -> Reached:
    """How far a reader is that has all before this version.

    Each search goes backwards from the newest row: it costs what there is to be read.
    """
    if version <= 1:
        return _BEGINNING
    given = {"session_id": session.session_id, "version": version - 1}
    last = (
        query.first(**given) for query in (_last_event, _last_message, _last_revision, _last_note)
    )
    return Reached(Place(version - 1, -1), *(0 if row is None else row[0] for row in last))


@Prepared
def _versions(given: type[Given]) -> QuerySet[Session, tuple[str, int]]:
    return Session.objects.filter(pk__in=[GivenList("ids")]).values_list("session_id", "version")


@Prepared
def _events(given: type[Given]) -> QuerySet[Any, Any]:
    rows = SessionEvent.objects.filter(
        session=given("session_id"), sequence__gt=given("after"), sequence__lte=given("until")
    )
    columns = ("session_version", "sequence", "subject", "subject_id")
    return rows.order_by("sequence").values_list(*columns)[:GIVEN_LIMIT]


@Prepared
def _messages(given: type[Given]) -> QuerySet[Any, Any]:
    rows = Message.objects.filter(
        session=given("session_id"), sequence__gt=given("after"), sequence__lte=given("until")
    )
    columns = (AS_ADDED, "sequence", "message_id", "size")
    return rows.order_by("sequence").values_list(*columns)[:GIVEN_LIMIT]


@Prepared
def _revisions(given: type[Given]) -> QuerySet[Any, Any]:
    rows = WorkingMemoryRevision.objects.filter(
        session=given("session_id"), version__gt=given("after"), version__lte=given("until")
    )
    return rows.order_by("version").values_list("session_version", "version")[:GIVEN_LIMIT]


@Prepared
def _notes(given: type[Given]) -> QuerySet[Any, Any]:
    """Their keys rise with the version, under the session's lock."""
    rows = ChangeNote.objects.filter(
        session=given("session_id"), version__range=(given("since"), given("until"))
    )
    columns = ("version", "id", "subject", "subject_id")
    return (
        rows.filter(id__gt=given("after"))
        .order_by("version", "id")
        .values_list(*columns)[:GIVEN_LIMIT]
    )


@Prepared
def _last_event(given: type[Given]) -> QuerySet[Any, Any]:
    rows = SessionEvent.objects.filter(
        session=given("session_id"), session_version__lte=given("version")
    )
    return rows.order_by("-sequence").values_list("sequence")[:1]


@Prepared
def _last_message(given: type[Given]) -> QuerySet[Any, Any]:
    rows = Message.objects.filter(session=given("session_id")).alias(added=AS_ADDED)
    return (
        rows.filter(added__lte=given("version")).order_by("-sequence").values_list("sequence")[:1]
    )


@Prepared
def _last_revision(given: type[Given]) -> QuerySet[Any, Any]:
    rows = WorkingMemoryRevision.objects.filter(
        session=given("session_id"), session_version__lte=given("version")
    )
    return rows.order_by("-version").values_list("version")[:1]


@Prepared
def _last_note(given: type[Given]) -> QuerySet[Any, Any]:
    rows = ChangeNote.objects.filter(session=given("session_id"), version__lte=given("version"))
    return rows.order_by("-version", "-id").values_list("id")[:1]
