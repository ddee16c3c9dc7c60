from .access_token import AccessToken
from .bulk import BulkMove, BulkTarget
from .change_note import ChangeNote
from .content_read import ContentRead, ReadChain
from .event import SessionEvent
from .idempotency import IdempotencyRecord
from .memory import WorkingMemoryRevision
from .message import Message
from .search import SearchEntry
from .session import MetadataTerm, Session
from .tool_call import ToolCall

__all__ = [
    "AccessToken",
    "BulkMove",
    "BulkTarget",
    "ChangeNote",
    "ContentRead",
    "IdempotencyRecord",
    "Message",
    "MetadataTerm",
    "ReadChain",
    "SearchEntry",
    "Session",
    "SessionEvent",
    "ToolCall",
    "WorkingMemoryRevision",
]
