"""The admin: an operator's view of what agents have stored, and the few things to do about it."""

from . import accounts, content_reads, records, tokens, tool_calls

__all__ = ["accounts", "content_reads", "records", "tokens", "tool_calls"]
