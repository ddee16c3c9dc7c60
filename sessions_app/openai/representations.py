"""What these clients see of a session, and of lists."""

from collections.abc import Sequence
from typing import Any

from sessions_app.models import Session
from sessions_app.rows import SessionRow
from sessions_app.services.items.outgoing import NamedItem
from sessions_app.timestamps import instant

_OURS, _THEIRS = "sess_", "conv_"


def session_id_of(conversation_id: str) -> str:
    """Both names of a session are known here; any other is an id that names nothing."""
    if conversation_id.startswith(_THEIRS):
        return _OURS + conversation_id.removeprefix(_THEIRS)
    return conversation_id


def conversation_id_of(session_id: str) -> str:
    return _THEIRS + session_id.removeprefix(_OURS)


def represent_conversation(session: Session | SessionRow) -> dict[str, Any]:
    created_at = instant(session.created_at)
    return {
        "id": conversation_id_of(session.session_id),
        "object": "conversation",
        "created_at": int(created_at.timestamp()) if created_at else 0,
        "metadata": session.metadata,
    }


def represent_deleted(session_id: str) -> dict[str, Any]:
    return {
        "id": conversation_id_of(session_id),
        "object": "conversation.deleted",
        "deleted": True,
    }


def represent_items(items: Sequence[NamedItem], *, has_more: bool = False) -> dict[str, Any]:
    ids = [items[0].id, items[-1].id] if items else []
    return _list([each.item for each in items], ids, has_more=has_more)


def represent_conversations(rows: Sequence[SessionRow], *, has_more: bool) -> dict[str, Any]:
    data = [represent_conversation(row) for row in rows]
    return _list(data, [each["id"] for each in data], has_more=has_more)


def _list(data: list[Any], ids: list[str], *, has_more: bool) -> dict[str, Any]:
    """The real API says null of an empty list's ends."""
    return {
        "object": "list",
        "data": data,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": has_more,
    }
