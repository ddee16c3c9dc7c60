from .access_token import AccessToken
from .content_read import ContentRead
from .event import SessionEvent
from .idempotency import IdempotencyRecord
from .memory import WorkingMemoryRevision
from .message import Message
from .session import MetadataTerm, Session
from .tool_call import ToolCall

__all__ = [
    "AccessToken",
    "ContentRead",
    "IdempotencyRecord",
    "Message",
    "MetadataTerm",
    "Session",
    "SessionEvent",
    "ToolCall",
    "WorkingMemoryRevision",
]
