from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from ..chain import DIGEST_LENGTH
from ..fields import JSONTextField
from ..ids import MAX_ID_LENGTH
from ..jsontext import JSONText
from ..querysets import SessionQuerySet, newest_run_in
from ..states import TROUBLED_RUNS, SessionStatus


def empty_object() -> JSONText:
    return JSONText("{}")


class UsageFields(models.Model):
    """Tokens and money spent. Money is counted in billionths of a dollar, so that sums are exact
    on every database."""

    input_tokens = models.BigIntegerField(_("input tokens"), default=0)
    output_tokens = models.BigIntegerField(_("output tokens"), default=0)
    cached_input_tokens = models.BigIntegerField(_("cached input tokens"), default=0)
    reasoning_tokens = models.BigIntegerField(_("reasoning tokens"), default=0)
    cost_nanousd = models.BigIntegerField(_("cost (10⁻⁹ USD)"), default=0)

    class Meta:
        abstract = True


class Session(UsageFields):
    """A long-lived dossier; see `sessions_app.states` for the life that it leads.

    Counters, deadlines and the active run stand in the row, so that one lock and one read tell
    all that a write must know. After deletion the row stays as a tombstone.
    """

    session_id = models.CharField(
        _("session id"), max_length=MAX_ID_LENGTH, primary_key=True, editable=False
    )
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("account"),
        on_delete=models.PROTECT,
        related_name="agent_sessions",
        db_index=False,  # every index below that begins with it serves
    )
    external_id = models.CharField(_("external id"), max_length=255, null=True)
    agent_id = models.CharField(_("agent"), max_length=255, null=True)
    user_id = models.CharField(_("user"), max_length=255, null=True)
    title = models.CharField(_("title"), max_length=500, null=True)
    # Nobody gave the title: it is how the user began, which only those see who may read content.
    title_is_said = models.BooleanField(default=False, editable=False)
    # Title and external id, folded: what `q` looks through, the same on every database.
    search_text = models.TextField(default="", editable=False)
    status = models.CharField(
        _("status"), max_length=7, choices=SessionStatus, default=SessionStatus.ACTIVE
    )
    metadata = JSONTextField(_("metadata"), default=empty_object)

    version = models.BigIntegerField(_("version"), default=1)
    working_memory_version = models.BigIntegerField(_("working memory version"), default=0)
    last_sequence = models.BigIntegerField(_("last sequence"), default=0)
    # Messages up to here are the system and developer messages that open the session.
    head_sequence = models.BigIntegerField(default=0, editable=False)
    # The message by which the context begins, and up to where it stands for what was said.
    compaction_sequence = models.BigIntegerField(null=True, editable=False)
    compacted_through = models.BigIntegerField(null=True, editable=False)
    event_count = models.BigIntegerField(default=0, editable=False)
    # Where the chain of its events ends: of the newest one.
    event_digest = models.CharField(max_length=DIGEST_LENGTH, null=True, editable=False)
    message_count = models.BigIntegerField(_("messages"), default=0)
    tool_call_count = models.BigIntegerField(_("tool calls"), default=0)
    open_tool_call_count = models.BigIntegerField(_("open tool calls"), default=0)
    run_count = models.BigIntegerField(_("runs"), default=0)
    failed_run_count = models.BigIntegerField(_("failed runs"), default=0)

    # The active run, as far as an append must know it: checked and renewed in the locked row.
    active_run_id = models.CharField(_("active run"), max_length=MAX_ID_LENGTH, null=True)
    active_run_attempt = models.BigIntegerField(null=True)
    active_run_lease_seconds = models.BigIntegerField(null=True)  # null while it waits
    active_run_deadline = models.DateTimeField(null=True)
    active_run_seen_at = models.DateTimeField(null=True)
    # The earliest deadline among queued and child runs.
    other_run_deadline = models.DateTimeField(null=True)
    newest_run_id = models.CharField(max_length=MAX_ID_LENGTH, null=True)
    newest_run_status = models.CharField(_("newest run"), max_length=11, null=True)
    newest_run_deadline = models.DateTimeField(null=True)  # null: not queued, or the active one's

    idle_timeout_seconds = models.BigIntegerField(_("idle timeout (s)"), null=True)
    expires_at = models.DateTimeField(_("expires at"), null=True)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))
    last_activity_at = models.DateTimeField(_("last activity"))
    closed_at = models.DateTimeField(_("closed at"), null=True)
    expired_at = models.DateTimeField(_("expired at"), null=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True)
    purged_at = models.DateTimeField(_("purged at"), null=True)

    parent_session = models.ForeignKey(
        "self",
        verbose_name=_("parent session"),
        on_delete=models.PROTECT,
        null=True,
        related_name="children",
        db_index=False,  # `session_by_parent` leaves out those without one: nearly all
    )
    forked_at_sequence = models.BigIntegerField(_("forked at"), null=True)
    imported_from = models.CharField(_("imported from"), max_length=255, null=True)

    # Not stored: the version that `locked_session` found, from which a change counts.
    version_when_locked: int = 0

    objects = SessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        permissions = [
            ("use_api", _("May use the REST API")),
            ("view_all_sessions", _("May read every account's sessions over the API")),
            ("read_content", _("May read what sessions contain")),
            ("close_session", _("May close sessions")),
            ("expire_session", _("May expire sessions")),
            ("resume_session", _("May resume sessions")),
            ("export_session", _("May download lists of sessions")),
        ]
        indexes = [
            # GET /sessions, newest activity first.
            models.Index(
                fields=["account", "-last_activity_at", "-session_id"], name="session_by_activity"
            ),
            # GET /sessions?user_id=…&agent_id=…: "continue the last one".
            models.Index(
                fields=["account", "user_id", "agent_id", "-last_activity_at", "-session_id"],
                name="session_by_user_and_agent",
            ),
            # GET /sessions?order=created_at, either way.
            models.Index(
                fields=["account", "created_at", "session_id"], name="session_by_creation"
            ),
            # GET /sessions?parent_session_id=…
            models.Index(
                fields=["parent_session"],
                name="session_by_parent",
                condition=Q(parent_session__isnull=False),
            ),
            # The sweep: what has lapsed, and what is still to be purged.
            models.Index(
                fields=["expires_at"],
                name="session_by_expiry",
                condition=Q(status=SessionStatus.ACTIVE, expires_at__isnull=False),
            ),
            models.Index(
                fields=["active_run_deadline"],
                name="session_by_run_deadline",
                condition=Q(active_run_deadline__isnull=False),
            ),
            models.Index(
                fields=["other_run_deadline"],
                name="session_by_queue_deadline",
                condition=Q(other_run_deadline__isnull=False),
            ),
            # Of the home page of the console: how many there are. An active session with no call
            # open, which is what an append changes, stands in none of the three.
            models.Index(
                fields=["status", "-session_id"],
                name="session_ended_by_status",
                condition=Q(status=SessionStatus.CLOSED) | Q(status=SessionStatus.EXPIRED),
            ),
            models.Index(
                fields=["-session_id"],
                name="session_purged",
                condition=Q(status=SessionStatus.DELETED, purged_at__isnull=False),
            ),
            models.Index(
                fields=["-session_id"],
                name="session_unanswered",
                condition=Q(open_tool_call_count__gt=0),
            ),
            # The console's list, ?attention=yes, together with `session_unanswered`, which also
            # serves ?open_calls=yes.
            models.Index(
                fields=["-session_id"],
                name="session_in_trouble",
                condition=Q(status=SessionStatus.ACTIVE) & newest_run_in(TROUBLED_RUNS),
            ),
            # The console's list, ?failed=yes.
            models.Index(
                fields=["-session_id"],
                name="session_with_failed_run",
                condition=Q(failed_run_count__gt=0),
            ),
            # The sweep's purge, and the console's list of deleted sessions.
            models.Index(
                fields=["deleted_at"],
                name="session_awaiting_purge",
                condition=Q(status=SessionStatus.DELETED, purged_at__isnull=True),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                "account",
                "external_id",
                name="session_external_id_unique",
                condition=Q(external_id__isnull=False),
            ),
            models.CheckConstraint(
                name="session_status_has_its_time",
                condition=(
                    Q(status=SessionStatus.ACTIVE, closed_at=None, expired_at=None, deleted_at=None)
                    | Q(status=SessionStatus.CLOSED, closed_at__isnull=False, deleted_at=None)
                    | Q(status=SessionStatus.EXPIRED, expired_at__isnull=False, deleted_at=None)
                    | Q(status=SessionStatus.DELETED, deleted_at__isnull=False)
                ),
            ),
            models.CheckConstraint(
                name="session_counters_add_up",
                condition=Q(
                    message_count__gte=0,
                    message_count__lte=F("last_sequence"),
                    open_tool_call_count__gte=0,
                    open_tool_call_count__lte=F("tool_call_count"),
                    failed_run_count__gte=0,
                    failed_run_count__lte=F("run_count"),
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.session_id


class MetadataTerm(models.Model):
    """One scalar at the top level of a session's metadata, hashed: what ``metadata.key=value``
    looks up, the same on every database and whatever the value's length."""

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="metadata_terms")
    digest = models.CharField(max_length=64)

    class Meta:
        indexes = [
            # GET /sessions?metadata.<key>=<value>
            models.Index(fields=["digest", "session"], name="metadata_term_by_digest"),
        ]

    def __str__(self) -> str:
        return self.digest
