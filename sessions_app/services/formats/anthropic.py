"""For Anthropic's messages: ``messages``, and ``system`` apart.

What the API refuses beyond its types: turns that do not alternate, or that an assistant begins; a
``tool_use`` that the next turn does not answer first of all; ids that are used twice, or hold
anything but letters, digits, ``_`` and ``-``; texts of nothing but space; a failure without words,
or with pictures; thoughts without their signature, and at the end of a turn; space at the end of
what an assistant begins. Marks for its cache are left out: an agent sets its own, and more than
four are refused.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from .names import CallIds, tool_name
from .parts import (
    FAILED,
    Call,
    Media,
    Native,
    Part,
    Result,
    Said,
    result_of,
    text_of,
    texts_of,
    turns,
)

_HOME = "anthropic"
_ID = r"[a-zA-Z0-9_-]{1,2048}"
_LONGEST_NAME = 128
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_DOCUMENTS = ("application/pdf",)
# What its own blocks must have to go back; all else of them is left out.
_GOING_BACK: dict[str, dict[str, type | tuple[type, ...]]] = {
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "server_tool_use": {"id": str, "name": str, "input": dict},
}
_SERVER_RESULT: dict[str, type | tuple[type, ...]] = {"tool_use_id": str, "content": (list, dict)}
_THOUGHTS = ("thinking", "redacted_thinking")
_SYSTEM_ROLES = ("system", "developer")
_EARLIER = "(The conversation began earlier.)"

_Block = dict[str, Any]
_Turn = tuple[str, list[_Block]]


def write(said: Iterable[Said], mark_synthetic: bool) -> tuple[list[dict[str, Any]], str]:
    rules: list[str] = []
    spoken: list[Said] = []
    for message in said:
        if message.role in _SYSTEM_ROLES:
            rules += texts_of(message.parts)
        else:
            spoken.append(message)
    alternating = _merged(_turns(spoken, mark_synthetic))
    ended = _merged(
        (role, _ended(blocks) if role == "assistant" else blocks) for role, blocks in alternating
    )
    if ended and ended[0][0] == "assistant":
        ended.insert(0, ("user", [_text(_EARLIER)]))
    if ended and ended[-1][0] == "assistant":
        _strip_end(ended[-1][1])
    written = [{"role": role, "content": blocks} for role, blocks in ended]
    # Some clients store their rules with every turn.
    return written, "\n\n".join(dict.fromkeys(rule for rule in rules if rule.strip()))


def _turns(said: Iterable[Said], mark_synthetic: bool) -> Iterable[_Turn]:
    ids = CallIds(_ID)
    for turn in turns(said):
        role = turn[0].role
        named = {id(call): ids.of(call) for message in turn for call in message.calls}
        yield role, [block for message in turn for block in _blocks(message, named)]
        yield (
            "user",
            [
                _answer(call, named[id(call)], mark_synthetic)
                for message in turn
                for call in message.calls
            ],
        )


def _merged(turns: Iterable[_Turn]) -> list[_Turn]:
    """Without empty ones, and those of the same side together."""
    found: list[_Turn] = []
    for role, blocks in turns:
        if blocks and found and found[-1][0] == role:
            found[-1][1].extend(blocks)
        elif blocks:
            found.append((role, list(blocks)))
    return found


def _ended(blocks: list[_Block]) -> list[_Block]:
    """An assistant's turn without tools of the server that did not answer, and whose last word is
    no thought."""
    begun = {block["id"] for block in blocks if block["type"] == "server_tool_use"}
    done = {block["tool_use_id"] for block in blocks if "tool_use_id" in block}
    lone = begun ^ done
    kept = [block for block in blocks if block.get("tool_use_id", block.get("id")) not in lone]
    while kept and kept[-1]["type"] in _THOUGHTS:
        kept.pop()
    return kept


def _strip_end(blocks: list[_Block]) -> None:
    if blocks[-1]["type"] == "text":
        blocks[-1] = _text(blocks[-1]["text"].rstrip())


def _blocks(message: Said, named: Mapping[int, str]) -> list[_Block]:
    is_user = message.role == "user"
    found: list[_Block] = []
    for part in message.parts:
        if isinstance(part, Call):
            found.append(_use(part, named[id(part)]))
        elif not is_user and (native := _native(part)):
            found.append(native)
        elif is_user and (shown := _shown(part)):
            found.append(shown)
        elif (text := text_of(part)).strip():
            found.append(_text(text))
    return found


def _use(call: Call, id: str) -> _Block:
    name = tool_name(call.name, longest=_LONGEST_NAME)
    return {"type": "tool_use", "id": id, "name": name, "input": call.object}


def _answer(call: Call, id: str, mark_synthetic: bool) -> _Block:
    result = result_of(call)
    block: _Block = {"type": "tool_result", "tool_use_id": id}
    content = _failure(result) if result.is_error else _returned(result)
    if content:
        block["content"] = content
    if result.is_error:
        block["is_error"] = True
    if result.is_synthetic and mark_synthetic:
        block["synthetic"] = True
    return block


def _failure(result: Result) -> str:
    return "\n\n".join(text for text in result.texts if text.strip()) or FAILED


def _returned(result: Result) -> str | list[_Block]:
    """Empty, where nothing was returned: the API takes a result without content."""
    shown = [_shown(part) or _text(text_of(part)) for part in result.parts]
    shown = [block for block in shown if block.get("text", "-").strip()]
    return shown[0]["text"] if len(shown) == 1 and shown[0]["type"] == "text" else shown


def _text(text: str) -> _Block:
    return {"type": "text", "text": text}


def _native(part: Part) -> _Block | None:
    """A block that came from this API, and can go back."""
    if not isinstance(part, Native) or part.home != _HOME:
        return None
    raw, kind = part.raw, str(part.raw.get("type"))
    keys = _GOING_BACK.get(kind, _SERVER_RESULT)
    if not all(isinstance(raw.get(key), type_) for key, type_ in keys.items()):
        return None
    if kind == "thinking" and not raw["signature"]:
        return None
    return {"type": kind, **{key: raw[key] for key in keys}}


def _shown(part: Part) -> _Block | None:
    """A picture or a document, if this API takes it."""
    if not isinstance(part, Media):
        return None
    if part.kind == "image":
        source = _source(part, _PICTURES)
        return {"type": "image", "source": source} if source else None
    source = _source(part, _DOCUMENTS)
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source, **title} if source else None


def _source(part: Media, media_types: tuple[str, ...]) -> dict[str, Any] | None:
    if part.data is not None:
        if part.media_type not in media_types:
            return None
        return {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    return {"type": "file", "file_id": part.file_id} if part.home == _HOME else None
