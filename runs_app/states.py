"""The lifecycle of a run, as data.

PENDING ──start──▶ RUNNING ⇄ WAITING          INTERRUPTED ──resume──▶ RUNNING
   └───────┬──────────┴─────────┘                  ▲  └──▶ CANCELLED, FAILED
           └──▶ COMPLETED, FAILED, CANCELLED       │
           └───────────── a deadline passed ───────┘
"""

from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class RunStatus(TextChoices):
    PENDING = "PENDING", _("Pending")
    RUNNING = "RUNNING", _("Running")
    WAITING = "WAITING", _("Waiting")
    COMPLETED = "COMPLETED", _("Completed")
    FAILED = "FAILED", _("Failed")
    CANCELLED = "CANCELLED", _("Cancelled")
    INTERRUPTED = "INTERRUPTED", _("Interrupted")


UNFINISHED = frozenset({RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING})
STARTED = frozenset({RunStatus.RUNNING, RunStatus.WAITING})
FINAL = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})

_CUT_OFF = frozenset({RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.INTERRUPTED})

RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: _CUT_OFF | {RunStatus.RUNNING, RunStatus.COMPLETED},
    RunStatus.RUNNING: _CUT_OFF | {RunStatus.WAITING, RunStatus.COMPLETED},
    RunStatus.WAITING: _CUT_OFF | {RunStatus.RUNNING, RunStatus.COMPLETED},
    RunStatus.INTERRUPTED: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED, RunStatus.FAILED}),
    **{final: frozenset() for final in FINAL},
}


def effective_status(status: str, *, deadline: datetime | None, now: datetime) -> RunStatus:
    """The status that every endpoint and page shows: past its deadline a run *is* interrupted."""
    if status in UNFINISHED and deadline is not None and deadline <= now:
        return RunStatus.INTERRUPTED
    return RunStatus(status)
