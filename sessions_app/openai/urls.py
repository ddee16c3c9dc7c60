from django.urls import URLPattern, URLResolver, path, register_converter
from django.urls.converters import StringConverter

from sessions_app.openai.representations import session_id_of
from sessions_app.openai.views import ConversationsView, ConversationView, ItemsView, ItemView


class ConversationConverter(StringConverter):
    def to_python(self, value: str) -> str:
        return session_id_of(value)


register_converter(ConversationConverter, "conversation")

_CONVERSATION = "conversations/<conversation:session_id>"

urlpatterns: list[URLPattern | URLResolver] = [
    path(f"{_CONVERSATION}/items", ItemsView.as_view(), name="conversation-items"),
    path("conversations", ConversationsView.as_view(), name="conversations"),
    path(_CONVERSATION, ConversationView.as_view(), name="conversation"),
    path(f"{_CONVERSATION}/items/<str:item_id>", ItemView.as_view(), name="conversation-item"),
]
