"""Pages of a list that go on from a place in it: nothing before it is counted or skipped.

A place lies just before a key: what is older has lesser keys, what is newer that key or greater
ones. So two pages that meet at a place share no row and leave none out, though one is empty.

A page looks through so many rows and no further (`seeking`), and says so; the next page goes on
from there. So a page costs the same at any size of the table, whatever is asked for.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from ..ids import MAX_ID_LENGTH
from ..services.counting import Bounded, bounded, of_each
from . import seeking
from .base import Listing
from .seeking import Seeking, Side, best_way, beyond, in_order, just_after

ID = re.compile(rf"[a-z]+_[0-9a-z]{{1,{MAX_ID_LENGTH}}}")
OLDER, NEWER = "older", "newer"
MOST_COUNTED = 1_000


class Walk(NamedTuple):
    """Keys in the order in which they were met, and the place where looking ended early."""

    keys: list[str]
    end: str | None


class KeysetListing(Listing):
    """A change list by descending key: ``?older=`` and ``?newer=`` name the place to go on from."""

    is_keyset = True
    counted: Bounded
    older: str | None
    newer: str | None
    looked_until: str | None
    """Where looking ended before the page was full."""
    goes_up = False

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet:
        for given in (self.params, self.filter_params):
            for name in (OLDER, NEWER):
                given.pop(name, None)
        return super().get_queryset(request, *args, **kwargs)

    def get_results(self, request: HttpRequest) -> None:
        older, newer = (_key(request.GET.get(name, "")) for name in (OLDER, NEWER))
        keys = self._upwards(newer) if newer and not older else self._downwards(older)
        self.result_list = self._rows(keys)
        self.result_count = self.counted.number
        self.full_result_count, self.show_full_result_count = None, False
        self.show_admin_actions = True
        self.is_first = self.newer is None

    @property
    def note(self) -> str:
        """How many there are, as far as looking went."""
        if self.looked_until:
            return self._unfinished()
        if not self.is_first or not self.result_list:
            return ""
        number = number_format(self.result_count, force_grouping=True)
        return f"{number}{'+' if self.counted.is_more else ''} {self._name()}"

    def _unfinished(self) -> str:
        if self.goes_up:
            said = _("%(most)s sessions were looked through; newer ones may match, too.")
        else:
            said = _("%(most)s sessions were looked through; older ones may match, too.")
        return said % {"most": number_format(seeking.MOST_LOOKED_THROUGH, force_grouping=True)}

    @property
    def nothing(self) -> tuple[str, str]:
        """What an empty page says: not that there is nothing, where that is not known."""
        if self.looked_until:
            go_on = _("“Newer” looks further.") if self.goes_up else _("“Older” looks further.")
            return _("Nothing found so far"), go_on
        if not self.is_first:
            return _("Nothing older"), _("No older row matches what is asked for.")
        return _("Nothing here"), _("No row matches what is asked for.")

    def _name(self) -> str:
        opts = self.opts
        return str(opts.verbose_name if self.result_count == 1 else opts.verbose_name_plural)

    @property
    def older_url(self) -> str | None:
        return self.get_query_string({OLDER: self.older}) if self.older else None

    @property
    def newer_url(self) -> str | None:
        return self.get_query_string({NEWER: self.newer}) if self.newer else None

    # --- the two ways ---

    def _downwards(self, place: str | None) -> list[str]:
        self.goes_up = False
        walk = self._walk(place, descending=True)
        keys, is_full = walk.keys[: self.list_per_page], len(walk.keys) > self.list_per_page
        self.older, self.newer = keys[-1] if is_full else walk.end, place
        self._tell(walk, is_full=is_full)
        return keys

    def _upwards(self, place: str) -> list[str]:
        self.goes_up = True
        walk = self._walk(place, descending=False)
        keys, is_full = walk.keys[: self.list_per_page][::-1], len(walk.keys) > self.list_per_page
        if not is_full and walk.end is None:
            # The first page, which would not be full if it ended here.
            return self._downwards(None)
        self.newer, self.older = just_after(keys[0]) if is_full else walk.end, place
        self._tell(walk, is_full=is_full)
        return keys

    def _tell(self, walk: Walk, *, is_full: bool) -> None:
        found = bounded(len(walk.keys), MOST_COUNTED)
        self.counted = Bounded(found.number, found.is_more or walk.end is not None)
        self.looked_until = None if is_full else walk.end

    # --- looking ---

    def _walk(self, place: str | None, *, descending: bool) -> Walk:
        filters = [spec for spec in self.filter_specs if isinstance(spec, Seeking)]
        every = beyond(place, self._every(filters), descending=descending)
        way = best_way(every, filters, descending=descending)
        rows = beyond(place, self.queryset, descending=descending)
        keys = self._keys(beyond(way.end, rows, descending=not descending), way.sides, descending)
        return Walk(keys, None if len(keys) > MOST_COUNTED else way.end)

    def _every(self, filters: Sequence[Seeking]) -> QuerySet:
        """Among which rows is looked: all whose keys are not out of the question."""
        admin: Any = self.model_admin
        every = self.model._default_manager.all()
        if admin.seeks(self.query):
            every = admin.search(every, self.query)
        below = [spec.below for spec in filters if spec.below]
        return beyond(min(below, default=None), every, descending=True)

    def _keys(self, rows: QuerySet, sides: Sequence[Side], descending: bool) -> list[str]:
        """The first keys of these rows; all sides in one statement."""
        found = [
            in_order(side, rows.filter(side.condition), descending=descending) for side in sides
        ]
        limited = [each.values("pk")[: MOST_COUNTED + 1] for each in found]
        keys = {key for (key,) in of_each("SELECT pk FROM ({rows}) AS found", limited)}
        return sorted(keys, reverse=descending)[: MOST_COUNTED + 1]

    def _rows(self, keys: list[str]) -> list[Any]:
        heavy = getattr(self.model_admin, "heavy", ())
        found = self.root_queryset.filter(pk__in=keys).defer(*heavy)
        return list(found.order_by("-pk"))


def _key(given: str) -> str | None:
    return given if ID.fullmatch(given) else None
