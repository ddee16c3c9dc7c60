"""What each provider's client is called with: parts of a packet, handed over as they come.

    packet = dossier.context(session_id, format="anthropic", mark_synthetic="false")
    answer = anthropic_client.messages.create(
        model=MODEL, max_tokens=4096, tools=TOOLS, **request_for("anthropic", packet)
    )

Nothing is converted here, and that is the point: the server has put late results at their calls,
answered calls whose tool was interrupted, and said it all by that API's rules.
"""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]

# By format: the client's method, and which of its arguments come from which part of the packet.
CALLS: dict[str, tuple[str, JsonObject]] = {
    "openai_chat": ("chat.completions.create", {"messages": "messages"}),
    "openai_responses": ("responses.create", {"input": "messages"}),
    "anthropic": ("messages.create", {"system": "system", "messages": "messages"}),
}


def request_for(api: str, packet: JsonObject) -> JsonObject:
    """The arguments that come from the packet; model and tools are the agent's own."""
    _method, arguments = CALLS[api]
    return {name: packet[part] for name, part in arguments.items()}


def described(api: str, packet: JsonObject) -> str:
    """The call in one line, for people."""
    method, _arguments = CALLS[api]
    given = [
        f"{name}={value!r}" if isinstance(value, str) else f"{name}=<{len(value)} of them>"
        for name, value in request_for(api, packet).items()
    ]
    return f"{method}({', '.join(given)}, …)"
