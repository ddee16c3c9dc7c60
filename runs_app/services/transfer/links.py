"""Which calls and results the messages of a file hold, held against its tool calls.

Each call that a message made, and each result, stands in both; so nothing that is imported is a
result without its call (report PAIR-04). Ids repeat, so they are counted.
"""

from collections import Counter

from sessions_app.errors import InvalidRequest
from sessions_app.models import Message
from sessions_app.services.drafts import Draft

from .reading import at_line
from .scratch import Scratch

_CALLED, _ANSWERED = "called", "answered"
_SEQUENCE_OF = {_CALLED: "message_sequence", _ANSWERED: "result_sequence"}
_WORDS = {_CALLED: "makes a call", _ANSWERED: "answers a call"}

# The first tool call that says more of a message than that holds.
_TOO_MUCH = """
SELECT numbered.line, sequence FROM (
    SELECT line, {sequence} AS sequence, tool_call_id,
        row_number() OVER (PARTITION BY {sequence}, tool_call_id ORDER BY line) AS number
    FROM toolcall WHERE {sequence} IS NOT NULL
) AS numbered LEFT JOIN {table} AS held USING (sequence, tool_call_id)
WHERE held.count IS NULL OR numbered.number > held.count ORDER BY numbered.line LIMIT 1
"""
# The first message that holds more than the tool calls say of it. Of one that was superseded, the
# calls may be gone.
_TOO_LITTLE = """
SELECT held.line, held.tool_call_id FROM {table} AS held LEFT JOIN (
    SELECT {sequence} AS sequence, tool_call_id, count(*) AS count FROM toolcall GROUP BY 1, 2
) AS told USING (sequence, tool_call_id)
WHERE held.is_live AND held.count > coalesce(told.count, 0) ORDER BY held.line LIMIT 1
"""


def make_tables(scratch: Scratch) -> None:
    for table in _SEQUENCE_OF:
        scratch.execute(
            f"CREATE TABLE {table} (sequence, tool_call_id, count, line, is_live, "
            "PRIMARY KEY (sequence, tool_call_id)) WITHOUT ROWID"
        )
    scratch.execute("CREATE TABLE named (client_message_id PRIMARY KEY) WITHOUT ROWID")


def note(
    scratch: Scratch, line: int, message: Message, draft: Draft | None, *, is_live: bool
) -> None:
    """Remember what a message holds.

    Raises:
        InvalidRequest: another message has its client_message_id.
    """
    if (name := message.client_message_id) is not None:
        scratch.execute("INSERT OR IGNORE INTO named VALUES (?)", (name,))
        if not scratch.first("SELECT changes()")[0]:
            raise InvalidRequest.at("/client_message_id", "stands in the file twice")
    if draft is None:
        return
    for table, held in ((_CALLED, draft.calls), (_ANSWERED, draft.results)):
        for tool_call_id, count in Counter(each.tool_call_id for each in held).items():
            row = (message.sequence, tool_call_id, count, line, is_live)
            scratch.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", row)  # noqa: S608


def check(scratch: Scratch) -> None:
    """Hold the tool calls against the messages.

    Raises:
        InvalidRequest: with the line of what has no counterpart.
    """
    for table, sequence in _SEQUENCE_OF.items():
        names = {"table": table, "sequence": sequence}
        if found := scratch.first(_TOO_MUCH.format(**names)):
            with at_line(found[0]):
                reason = f"message {found[1]} holds nothing (more) with this tool_call_id"
                raise InvalidRequest.at(f"/{sequence}", reason)
        if found := scratch.first(_TOO_LITTLE.format(**names)):
            with at_line(found[0]):
                reason = f"{_WORDS[table]} {found[1][:80]!r} that no tool_call of the file tells of"
                raise InvalidRequest.at("/message", reason)
