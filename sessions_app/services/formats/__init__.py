"""Stored messages as the input of a provider's API: pure functions, which read nothing else.

Messages are stored in any of the forms that `pairing` knows, and mixed: chat messages, content
blocks, provider-native items. `stored` takes each apart into neutral parts (`parts`), `exchange`
puts calls and results together, and a writer for each API (`openai_chat`, `openai_responses`,
`anthropic`) says them in its words and by its rules. What an API has no form for becomes a short
text in its place (``[audio]``); thoughts go back to the API that they came from, and to no other.

Source: contract, "Resume packet"; what each API accepts: the request types of the official
``openai`` and ``anthropic`` packages, and, at the rules, what the APIs refuse beyond them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import anthropic, openai_chat, openai_responses
from .exchange import arranged
from .stored import StoredMessage

NATIVE = "native"
_WRITERS = {
    "openai_chat": openai_chat.write,
    "openai_responses": openai_responses.write,
    "anthropic": anthropic.write,
}
FORMATS = (NATIVE, *_WRITERS)


@dataclass(frozen=True, slots=True)
class Conversation:
    """``messages`` is what the API takes as ``messages`` (or ``input``); ``system`` what it takes
    beside them, null where it has no such parameter."""

    messages: list[dict[str, Any]]
    system: str | None = None


def conversation(
    messages: Iterable[StoredMessage],
    *,
    format: str,
    answers: Mapping[int, Collection[int]] | None = None,
    mark_synthetic: bool = True,
) -> Conversation:
    """Stored messages, oldest first, for the API that ``format`` names.

    ``answers`` says which messages' calls a message's results answer, by sequences (`Window`);
    without it, results find their calls by the rule by which they were stored. A call without a
    result gets one that says so, marked by ``"synthetic": true`` unless ``mark_synthetic`` is off;
    a result without a call is left out (report PAIR-04).
    """
    said = arranged(messages, answers or {})
    written, system = _WRITERS[format](said, mark_synthetic)
    return Conversation(written, system)
