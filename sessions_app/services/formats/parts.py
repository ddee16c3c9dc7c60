"""What messages are made of, whatever the provider: the parts that all writers know."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import DossierError
from ...jsontext import JSONText, loads

NO_RESULT = (
    "No result was recorded for this tool call. It was interrupted: the tool may have run or not."
)
FAILED = "The tool failed and said nothing."
_LONGEST_NOTE = 64


class Text(NamedTuple):
    text: str


class Media(NamedTuple):
    """A picture or a document: by address, by its bytes, or by a file's id at ``home``, its API.

    ``data`` is base64. ``detail`` is OpenAI's.
    """

    kind: str  # "image" or "file"
    url: str | None = None
    media_type: str | None = None
    data: str | None = None
    file_id: str | None = None
    home: str | None = None
    name: str | None = None
    detail: str | None = None

    @property
    def data_url(self) -> str | None:
        """The address, or one that holds the bytes; None: there are neither."""
        return f"data:{self.media_type};base64,{self.data}" if self.data is not None else self.url


class Audio(NamedTuple):
    """What a user said; only chat completions listen."""

    data: str
    encoding: str  # "wav" or "mp3"


class Native(NamedTuple):
    """What only its own API understands: ``home`` names it. ``is_thought``: the others need not
    know that it was there."""

    home: str
    raw: Mapping[str, Any]
    is_thought: bool = False


@dataclass(slots=True, eq=False)
class Result:
    """``native`` is the item that it was stored as, if that is no common one."""

    parts: list["Part"]
    is_error: bool = False
    is_synthetic: bool = False
    native: Mapping[str, Any] | None = None

    @property
    def texts(self) -> list[str]:
        """What it says in words; of a failure at least that it was one."""
        return texts_of(self.parts) or ([FAILED] if self.is_error else [])


@dataclass(slots=True, eq=False)
class Call:
    """A tool call, at the ``index``-th place of the message with this sequence.

    ``arguments`` are as they were stored: of chat messages and items a string, of blocks an object.
    A ``custom`` tool takes a text and no JSON. ``native`` is the item that it was stored as, where
    it calls a tool that the Responses API knows by itself.
    """

    sequence: int
    index: int
    id: str
    name: str
    arguments: Any
    is_custom: bool = False
    native: Mapping[str, Any] | None = None
    result: Result | None = None

    @property
    def text(self) -> str:
        """The arguments as a string, as the model wrote them if it wrote a string."""
        given = self.arguments
        if isinstance(given, str):
            return given
        return "{}" if given is None else JSONText.of(given).text

    @property
    def object(self) -> dict[str, Any]:
        """The arguments as an object; what is none stands in one, as ``arguments`` or ``input``."""
        given = self.arguments
        if isinstance(given, Mapping):
            return dict(given)
        if self.is_custom:
            return {"input": given}
        if given is None or (isinstance(given, str) and not given.strip()):
            return {}
        value = _parsed(given) if isinstance(given, str) else given
        return value if isinstance(value, dict) else {"arguments": value}


Part = Text | Media | Audio | Native | Call


@dataclass(slots=True, eq=False)
class Said:
    """One message, its results taken out and given to their calls.

    ``continues``: it comes straight after another of the same assistant's turn. ``name`` is the
    speaker's; ``phase`` is what the Responses API calls so.
    """

    role: str
    parts: list[Part]
    name: str | None = None
    phase: str | None = None
    continues: bool = False

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]


def result_of(call: Call) -> Result:
    """Its result, or what stands in for one; nothing is stored."""
    if call.result is not None:
        return call.result
    return Result([Text(NO_RESULT)], is_error=True, is_synthetic=True)


def note(kind: object) -> Text:
    """In place of what has no form here."""
    return Text(f"[{str(kind)[:_LONGEST_NOTE]}]")


def text_of(part: Part) -> str:
    """What a part says in words; of thoughts nothing."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Media):
        return note(f"{part.kind}: {part.name}" if part.name else part.kind).text
    if isinstance(part, Native):
        return "" if part.is_thought else note(part.raw.get("type")).text
    return "" if isinstance(part, Call) else note("audio").text


def texts_of(parts: Iterable[Part]) -> list[str]:
    """The words of these parts, without those that are empty."""
    return [text for text in map(text_of, parts) if text]


def turns(said: Iterable[Said]) -> list[list[Said]]:
    """The messages of each turn: one, or those of an assistant that nothing interrupted."""
    found: list[list[Said]] = []
    for message in said:
        if message.continues:
            found[-1].append(message)
        else:
            found.append([message])
    return found


def _parsed(text: str) -> Any:
    """What a string of arguments holds; the string, where that is no JSON that can be kept."""
    try:
        return loads(text.encode())
    except DossierError:
        return text


def as_text(value: Any) -> str:
    """Any JSON value in words."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
