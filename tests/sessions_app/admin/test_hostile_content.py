"""Whatever a client stores is shown as text, and no page grows with it."""

import json

import pytest
from django.urls import reverse

from sessions_app.console.values import PREVIEW_CHARACTERS, visible
from sessions_app.models import AccessToken, Message
from sessions_app.services import Actor, SessionManager
from sessions_app.services.tokens import issue_token
from tests.admin import STORED, list_of, make_whole, read
from tests.factories import add_messages, make_session

PAYLOADS = [
    "<script>evil()</script>",
    "</pre></textarea></title><script>evil()</script>",
    "<img src=x onerror=evil()>",
    '"><svg onload=evil()>',
    "' onmouseover='evil()' x='",
    '<iframe srcdoc="<script>evil()</script>"></iframe>',
    "[evil](javascript:evil())",
    "javascript:evil()",
    "<a href='javascript:evil()'>evil</a>",
    "{{ evil }}{% evil %}%(evil)s%s{evil}{0}",
    "<!-- evil --><style>*{display:none}</style>",
    "<form action=//evil><input name=evil><base href=//evil>",
]
TOKENS = "/admin/sessions_app/accesstoken/"


@pytest.fixture
def operator(entered):
    return entered("superuser")


def check(page):
    """Nothing of the payloads has become markup."""
    assert "evil" not in page.scripts
    assert not page.of("iframe")
    assert not page.of("base")
    assert not page.of("style")
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert "evil" not in "".join(attributes), (tag, attributes)
        for name in ("href", "src", "action", "formaction"):
            address = attributes.get(name, "").strip().lower()
            assert not address.startswith(("javascript:", "data:", "//")), (tag, attributes)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markup_is_shown_as_text_everywhere(operator, agent, payload):
    whole = make_whole(agent, text=payload)
    manager = SessionManager(Actor.account(agent))
    manager.close(session_id=whole.session.pk, reason=payload)
    pages = [
        *map(list_of, STORED),
        *(whole.page(name) for name in STORED),
        *(
            f"/admin/sessions_app/session/{name}/?id={whole.session.pk}"
            for name in ("close", "resume", "remove")
        ),
        f"/admin/sessions_app/toolcall/settle/?id={whole.call.pk}",
        f"/admin/runs_app/run/cancel/?id={whole.run.pk}",
    ]
    for address in pages:
        page = read(operator, address)
        check(page)
    for name in STORED[:1]:
        assert payload[:10] in read(operator, whole.page(name)).text


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_asked_is_echoed_as_text(operator, agent, payload):
    make_session(account=agent)
    names = ("q", "agent", "user", "account", "status", "run_status", "active")
    check(read(operator, list_of("sessions_app_session"), **dict.fromkeys(names, payload)))
    data = {"id": make_session(account=agent).pk, "reason": payload, "typed": payload}
    more = {"_changelist_filters": payload, "list": payload}
    response = operator.post("/admin/sessions_app/session/remove/", data | more)
    page = type(read(operator, "/admin/"))(response.content.decode())
    check(page)
    for bad in (f"{TOKENS}add/", "/admin/login/"):
        posted = operator.post(bad, {"account": payload, "name": payload, "username": payload})
        assert posted.status_code in {200, 302}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_name_of_a_token_is_text(operator, agent, payload):
    issue_token(account=agent, name=payload)
    key = AccessToken.objects.get().token_key
    for address in (TOKENS, f"{TOKENS}{key}/change/", f"{TOKENS}{key}/revoke/"):
        check(read(operator, address))


def test_controls_that_turn_or_hide_text_are_shown(operator, agent):
    whole = make_whole(agent, text="a\u202eb\u2066c\u200fd\x1b[31me\ufefff")
    for address in (list_of("sessions_app_session"), *(whole.page(name) for name in STORED[:3])):
        html = read(operator, address).html
        assert not set(html) & set("\u202e\u2066\u200f\x1b\ufeff")
    assert visible("a\u202eb") == "a⟨U+202E⟩b"
    assert visible("中文 🧑\u200d🚀\n\tZeile") == "中文 🧑\u200d🚀\n\tZeile"


HUGE = {
    "one line": "x" * 5_000_000,
    "many lines": "line\n" * 100_000,
    "no break": "W" * 10_000,
    "escapes": "\u202e" * 1_000_000,
    "quotes": '"<&' * 500_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
class TestHugeValues:
    def test_are_shortened_and_say_so(self, operator, agent, text):
        session = make_session(account=agent)
        (message,) = add_messages({"role": "user", "content": text}, session=session)
        response = operator.get(page_of(message))
        assert len(response.content) < 200_000
        page = read(operator, page_of(message))
        assert f"… {len(text) - PREVIEW_CHARACTERS:,} more characters." in page.words()
        assert len([link for link in page.links() if "/download/" in link]) == 2

    def test_are_downloaded_byte_for_byte(self, operator, agent, text):
        session = make_session(account=agent)
        (message,) = add_messages({"role": "user", "content": text}, session=session)
        links = [link for link in read(operator, page_of(message)).links() if "/download/" in link]
        content, body = (operator.get(link) for link in links)
        assert content.content == text.encode()
        stored = Message.objects.get().body.text
        assert body.content == stored.encode()
        assert json.loads(body.content)["content"] == text


def test_json_in_a_string_is_shown_as_what_it_says(operator, agent):
    whole = make_whole(agent, text='{"path": "app.py"}')
    page = read(operator, whole.page("sessions_app_toolcall"))
    assert '{"path": "app.py"}' in page.text


class TestADownload:
    def test_is_a_file_that_no_browser_interprets(self, operator, agent):
        whole = make_whole(agent, text="<script>evil()</script>")
        for name, document in (
            ("session", "metadata"),
            ("message", "body"),
            ("message", "content"),
            ("toolcall", "arguments"),
            ("workingmemoryrevision", "memory"),
        ):
            page = whole.page(f"sessions_app_{name}")
            response = operator.get(page.replace("/change/", f"/download/{document}/"))
            assert response.status_code == 200
            assert response["Content-Type"] == "text/plain; charset=utf-8"
            assert response["Content-Disposition"].startswith("attachment; filename=")
            assert response["X-Content-Type-Options"] == "nosniff"
            assert "no-store" in response["Cache-Control"]

    def test_of_what_is_not_there_is_404(self, operator, agent):
        whole = make_whole(agent)
        page = whole.page("sessions_app_toolcall")
        for name in ("result", "error", "session", "status"):
            response = operator.get(page.replace("/change/", f"/download/{name}/"))
            assert response.status_code == 404
        unknown = "/admin/sessions_app/message/msg_unknown/download/body/"
        assert operator.get(unknown).status_code == 404

    def test_gives_numbers_as_they_were_sent(self, operator, agent):
        session = make_session(account=agent)
        number = {"big": 123456789012345678901234567890}
        sent = {"role": "user", "content": "x", "extra": number}
        (message,) = add_messages(sent, session=session)
        response = operator.get(page_of(message).replace("/change/", "/download/body/"))
        assert b'"big":123456789012345678901234567890' in response.content


def page_of(message):
    return reverse("admin:sessions_app_message_change", args=[message.pk])
