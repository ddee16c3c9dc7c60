"""Counting that a big table cannot make slow."""

from typing import cast

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

MOST_COUNTED = 10_000


class CappedPaginator(Paginator):
    """Counts to a limit and no further (report ADM-01: every page of a list counted millions).

    What lies beyond the last page is reached by a filter.
    """

    @cached_property
    def count(self) -> int:
        return min(self._counted, MOST_COUNTED)

    @property
    def is_capped(self) -> bool:
        """Whether there are more than were counted."""
        return self._counted > MOST_COUNTED

    @cached_property
    def _counted(self) -> int:
        rows = cast("QuerySet", self.object_list).order_by()
        return rows[: MOST_COUNTED + 1].count()
