"""OpenAI's Conversations API: conversations are sessions, items are messages."""

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from sessions_app.api.base import DomainView
from sessions_app.api.query import Choice, Clamped, Repeated, Text
from sessions_app.api.response import Response
from sessions_app.errors import NotFound, SessionDeleted
from sessions_app.openai.representations import (
    represent_conversation,
    represent_conversations,
    represent_deleted,
    represent_items,
    session_id_of,
)
from sessions_app.openai.schema import ConversationSchema
from sessions_app.openai.shapes import (
    ConversationChangesIn,
    ConversationOut,
    ConversationsOut,
    DeletedOut,
    ItemOut,
    ItemsOut,
    NewConversationIn,
    NewItemsIn,
)
from sessions_app.services import Appended, NewSession, SessionChanges
from sessions_app.services.conversations import ConversationManager
from sessions_app.services.idempotency import Write
from sessions_app.services.items.ids import MAX_ITEM_ID
from sessions_app.services.items.incoming import draft_items
from sessions_app.services.items.outgoing import items_of
from sessions_app.services.messages import draft_messages

_INCLUDED = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
# The official client writes the name of a list with brackets.
_INCLUDE = [
    Repeated(
        name=name,
        choices=_INCLUDED,
        description="Checked, and otherwise without effect: all that is stored is answered.",
    )
    for name in ("include", "include[]")
]
_PAGE = [
    Clamped(name="limit", low=1, high=100, default=100, description="1 to 100, or the nearest."),
    Choice(name="order", choices=["asc", "desc"], default="desc"),
    Text(name="after", max_length=MAX_ITEM_ID, description="The id behind which the page begins."),
]


def _kept(first: Any, last: Any, _version: Any) -> str:
    """What a record keeps of an append."""
    return f'{{"first":{first},"last":{last}}}'


class ConversationDoor(DomainView):
    schema = ConversationSchema()

    @property
    def manager(self) -> ConversationManager:
        return ConversationManager(self.actor)

    @property
    def is_repeated(self) -> bool:
        """Whether the official client says that it has sent this before, without an answer."""
        count = self.http.META.get("HTTP_X_STAINLESS_RETRY_COUNT", "0")
        return count.isdecimal() and count.strip("0") != ""

    def page_asked_for(self) -> dict[str, Any]:
        return {
            "limit": self.params["limit"],
            "descending": self.params["order"] == "desc",
            "after": self.params["after"],
        }


class ConversationsView(ConversationDoor):
    parameters = {"GET": _PAGE}
    bodies = {"POST": NewConversationIn}

    @extend_schema(
        operation_id="list_conversations",
        summary="List conversations by their creation",
        responses=ConversationsOut,
    )
    def get(self, request: Request) -> Response:
        asked = self.page_asked_for()
        if asked["after"] is not None:
            asked["after"] = session_id_of(asked["after"])
        try:
            page = self.manager.sessions(**asked)
        except (NotFound, SessionDeleted) as error:
            shown = self.params["after"]
            raise NotFound(f"No conversation found with id '{shown}'", param="after") from error
        return self.respond(represent_conversations(page.data, has_more=page.has_more))

    @extend_schema(
        operation_id="create_conversation",
        summary="Create a conversation",
        responses={200: ConversationOut},
    )
    def post(self, request: Request) -> Response:
        session = self.manager.begin(
            NewSession(metadata=self.valid.get("metadata") or {}), items=self.valid["items"]
        )
        self.keep_session(session.session_id)
        return self.respond(represent_conversation(session))

    def reads_nothing(self) -> bool:
        return not self.valid["items"]

    def prepare(self, request: Request) -> None:
        super().prepare(request)
        given = self.valid.get("items")
        self.valid["items"] = [] if given is None else draft_items(given, pointer="/items")


class ConversationView(ConversationDoor):
    bodies = {"POST": ConversationChangesIn}
    deletes_session = True

    @extend_schema(
        operation_id="get_conversation",
        summary="Read a conversation",
        responses=ConversationOut,
    )
    def get(self, request: Request, session_id: str) -> Response:
        return self.respond(represent_conversation(self.manager.get(session_id=session_id)))

    @extend_schema(
        operation_id="update_conversation",
        summary="Replace a conversation's metadata",
        responses={200: ConversationOut},
    )
    def post(self, request: Request, session_id: str) -> Response:
        changes = SessionChanges(whole_metadata=self.valid["metadata"] or {})
        session = self.manager.update(session_id=session_id, changes=changes)
        return self.respond(represent_conversation(session))

    @extend_schema(
        operation_id="delete_conversation",
        summary="Delete a conversation, its items and all that belongs to its session",
        responses={200: DeletedOut},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        try:
            self.manager.delete(session_id=session_id)
        except SessionDeleted:
            if not self.is_repeated:
                raise
        return self.respond(represent_deleted(session_id))


class ItemsView(ConversationDoor):
    parameters = {"GET": [*_PAGE, *_INCLUDE], "POST": _INCLUDE}
    bodies = {"POST": NewItemsIn}

    @extend_schema(
        operation_id="list_conversation_items",
        summary="Read a conversation's items",
        description="A page may end before `limit`, at 16 MB: `has_more` says so.",
        responses=ItemsOut,
    )
    def get(self, request: Request, session_id: str) -> Response:
        page = self.manager.read_items(session_id=session_id, **self.page_asked_for())
        return self.respond(represent_items(page.data, has_more=page.has_more))

    @extend_schema(
        operation_id="add_conversation_items",
        summary="Add items, all or none",
        responses={200: ItemsOut},
    )
    def post(self, request: Request, session_id: str) -> Response:
        appended = self.manager.add(
            session_id=session_id, items=self.valid["items"], is_repeated=self.is_repeated
        )
        first, last = appended.messages[0].sequence, appended.messages[-1].sequence
        self.keep = {"first": first, "last": last}
        return self._added(appended.messages)

    def prepare(self, request: Request) -> None:
        super().prepare(request)
        if self.http.method == "POST":
            drafts = draft_items(self.valid["items"], pointer="/items")
            self.valid["items"] = draft_messages(drafts, pointer="/items")

    def answer_at_once(self, request: Request, write: Write | None) -> Response | None:
        if self.is_repeated or "HTTP_IF_MATCH" in self.http.META:
            return None
        appended: Appended | None = self.manager.append_plainly(
            session_id=self.kwargs["session_id"],
            messages=self.valid["items"],
            write=write and replace(write, status=200),
            kept=_kept,
        )
        return None if appended is None else self._added(appended.messages)

    def rebuild(self, request: Request, kept: Any, **kwargs: Any) -> Response:
        sequences = range(kept["first"], kept["last"] + 1)
        return self._added(self.manager.read_messages(sequences=sequences, **kwargs))

    def _added(self, messages: Any) -> Response:
        live = [message for message in messages if message.removed_at is None]
        items = [item for message in live for item in items_of(message)]
        return self.respond(represent_items(items))


class ItemView(ConversationDoor):
    parameters = {"GET": _INCLUDE}

    @extend_schema(
        operation_id="get_conversation_item",
        summary="Read one item",
        responses=ItemOut,
    )
    def get(self, request: Request, session_id: str, item_id: str) -> Response:
        found = self.manager.item(session_id=session_id, item_id=item_id)
        return self.respond(found.item)

    @extend_schema(
        operation_id="delete_conversation_item",
        summary="Delete an item; the answer is its conversation",
        responses={200: ConversationOut},
    )
    def delete(self, request: Request, session_id: str, item_id: str) -> Response:
        session = self.manager.remove_item(
            session_id=session_id, item_id=item_id, is_repeated=self.is_repeated
        )
        return self.respond(represent_conversation(session))
