"""Access tokens: made and shown once, listed without a secret, revoked."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app.models import AccessToken
from tests.admin import Page, read, told
from tests.factories import make_account

LIST = "/admin/sessions_app/accesstoken/"


@pytest.fixture
def administrator(entered):
    return entered("superuser")


def create(client, *, follow=True, **data):
    (key,) = [
        tag for tag in read(client, f"{LIST}add/").of("input") if tag.get("name") == "form_key"
    ]
    data = {"account": "agent", "name": "laptop", "form_key": key["value"], **data}
    return client.post(f"{LIST}add/", data, follow=follow), data


def shown(response):
    """The token on the page; there is one text area."""
    html = response.content.decode()
    return html.split("autofocus>")[1].split("<")[0]


def works(token):
    answer = Client().get("/api/v1/sessions", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code == 200


class TestANewToken:
    def test_is_shown_once_and_works(self, administrator, agent):
        response, _data = create(administrator)
        token = shown(response)
        assert works(token)
        assert response.redirect_chain == []
        assert "no-store" in response["Cache-Control"]
        assert "shown only this once" in Page(response.content.decode()).words()
        # Not again, and not in the browser session either.
        assert token not in read(administrator, LIST).html
        assert token not in str(dict(administrator.session))

    def test_is_not_made_twice_by_loading_again(self, administrator, agent):
        _response, data = create(administrator)
        again = administrator.post(f"{LIST}add/", data, follow=True)
        assert told(again) == ["This form has been used. A token is shown only once."]
        assert AccessToken.objects.count() == 1

    def test_belongs_to_the_account_with_its_name(self, administrator, agent):
        create(administrator, name=" the  laptop ")
        token = AccessToken.objects.get()
        assert (token.user, token.name, token.expiry) == (agent, "the  laptop", None)

    def test_may_end_with_a_day(self, administrator, agent, settings):
        settings.TIME_ZONE = "Asia/Kolkata"
        day = timezone.localdate() + timedelta(days=2)
        create(administrator, expires=day.isoformat())
        expiry = AccessToken.objects.get().expiry
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=18.5)
        assert abs(expiry - midnight) < timedelta(seconds=1)

    def test_lets_its_account_use_the_api(self, administrator, db):
        plain = User.objects.create_user("plain")
        response, _data = create(administrator, account="plain")
        assert works(shown(response))
        assert plain.groups.get().name == "agents"

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ({"account": "nobody-here"}, "There is no account of this name."),
            ({"account": "asleep"}, "This account is not active."),
            ({"account": ""}, "This field is required."),
            ({"name": " "}, "This field is required."),
            ({"name": "x" * 256}, "at most 255 characters"),
            ({"name": "a\x00b"}, "Null characters are not allowed."),
            ({"expires": "2020-01-01"}, "This day has passed."),
            ({"expires": "9999-12-31"}, "This day has passed."),
            ({"expires": "soon"}, "Enter a valid date."),
        ],
    )
    def test_is_not_made_of_nonsense(self, administrator, agent, data, said):
        asleep = make_account("asleep")
        asleep.is_active = False
        asleep.save()
        response, _data = create(administrator, **data)
        assert said in Page(response.content.decode()).words()
        assert not AccessToken.objects.exists()

    def test_is_in_the_log_without_itself(self, administrator, agent):
        token = str(shown(create(administrator)[0]))
        entry = LogEntry.objects.get()
        key = str(entry.object_id)
        assert (entry.object_repr, key) == ("laptop", token[: len(key)])
        assert len(key) < len(token) / 2
        # The index links what was done lately to its page.
        (link,) = [link for link in read(administrator, "/admin/").links() if key in link]
        assert "laptop" in read(administrator, link).words()


class TestTheDigest:
    def test_is_on_no_page(self, administrator, agent):
        create(administrator)
        token = AccessToken.objects.get()
        key = token.token_key
        pages = [
            LIST,
            "/admin/",
            f"{LIST}{key}/change/",
            f"{LIST}{key}/revoke/",
            f"/admin/auth/user/{agent.pk}/delete/",
            f"/admin/auth/user/{agent.pk}/change/",
        ]
        for address in pages:
            assert token.digest not in read(administrator, address).html

    def test_opens_no_page(self, administrator, agent):
        create(administrator)
        digest = AccessToken.objects.get().digest
        for page in ("change", "delete", "history", "revoke", "download/digest"):
            assert administrator.get(f"{LIST}{digest}/{page}/").status_code == 404


class TestRevoking:
    def test_asks_first_and_then_ends_it(self, administrator, agent):
        token = shown(create(administrator)[0])
        address = f"{LIST}{AccessToken.objects.get().token_key}/revoke/"
        assert address in read(administrator, LIST).links()
        assert "stops working within a few seconds" in read(administrator, address).words()
        assert works(token)
        assert told(administrator.post(address, follow=True)) == ["The token “laptop” was revoked."]
        assert not works(token)
        assert administrator.post(address).status_code == 404


def test_a_token_is_found_by_account_and_name(administrator, agent):
    create(administrator)
    create(administrator, name="server")
    assert "1 access token" in read(administrator, LIST, q="lap").words()
    assert "2 access tokens" in read(administrator, LIST, account="agent").words()
    assert "0 access tokens" in read(administrator, LIST, account="other").words()
