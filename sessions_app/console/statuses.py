"""Every status in words, whatever it is of: what an event goes from and to."""

from django.utils.translation import gettext_lazy as _

from ..states import SessionStatus

# By the name: runs_app stands above.
STATUSES = {
    "PENDING": _("Pending"),
    "RUNNING": _("Running"),
    "WAITING": _("Waiting"),
    "COMPLETED": _("Completed"),
    "SUCCEEDED": _("Succeeded"),
    "FAILED": _("Failed"),
    "CANCELLED": _("Cancelled"),
    "INTERRUPTED": _("Interrupted"),
    # What becomes of content.
    "REMOVED": _("Removed"),
    "SUPERSEDED": _("Superseded"),
    "FORKED": _("Forked"),
    **dict(SessionStatus.choices),
}
