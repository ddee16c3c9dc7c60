from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone
from knox.crypto import hash_token

from sessions_app.errors import InvalidRequest
from sessions_app.models import AccessToken
from sessions_app.services.tokens import get_or_create_account, issue_token
from tests.plumbing import client_with

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("create_token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


class TestTheCommand:
    def test_prints_the_token_alone(self) -> None:
        out, err = run("agent", "--name", "laptop")
        token = out.strip()
        assert out == f"{token}\n"
        assert len(token) == 64
        assert token not in err
        assert "agent" in err

    @pytest.mark.urls("tests.probe")
    def test_makes_a_token_that_works(self) -> None:
        token = run("agent", "--name", "laptop")[0].strip()
        assert client_with(token).get("/api/v1/echo").status_code == 200

    def test_makes_a_token_that_ends_if_asked(self) -> None:
        run("agent", "--name", "laptop", "--days", "30")
        expiry = AccessToken.objects.get().expiry
        assert expiry is not None
        left = expiry - timezone.now()
        assert timedelta(days=29, hours=23) < left <= timedelta(days=30)

    def test_makes_a_service_account(self) -> None:
        run("agent", "--name", "laptop")
        user = User.objects.get(username="agent")
        assert not user.has_usable_password()
        assert not user.is_staff
        assert [group.name for group in user.groups.all()] == ["agents"]

    def test_takes_the_account_that_is_there(self) -> None:
        for name in ("first", "second"):
            run("agent", "--name", name)
        assert User.objects.count() == 1
        assert {token.name for token in AccessToken.objects.all()} == {"first", "second"}

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["agent"], "--name"),
            (["--name", "x"], "ACCOUNT"),
            (["agent", "--name", ""], "name"),
            (["agent", "--name", "x", "--days", "0"], "has passed"),
            (["agent", "--name", "x", "--days", "-1"], "has passed"),
            (["agent", "--name", "x", "--days", "9999999999"], "--days"),
            (["agent", "--name", "x", "--days", "soon"], "--days"),
            (["agent", "--name", " "], "name"),
            (["agent", "--name", "x" * 256], "255"),
            (["two words", "--name", "x"], "username"),
            (["", "--name", "x"], "username"),
            (["a" * 151, "--name", "x"], "150"),
        ],
    )
    def test_says_what_is_wrong(self, arguments: list[str], words: str) -> None:
        with pytest.raises(CommandError, match=words):
            run(*arguments)
        assert not AccessToken.objects.exists()

    def test_refuses_an_account_that_is_switched_off(self) -> None:
        User.objects.create(username="agent", is_active=False)
        with pytest.raises(CommandError, match="not active"):
            run("agent", "--name", "x")

    def test_asks_whether_the_database_is_migrated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(**kwargs: Any) -> None:
            raise OperationalError("no such table: auth_user")

        monkeypatch.setattr(
            "sessions_app.management.commands.create_token.get_or_create_account", missing
        )
        with pytest.raises(CommandError, match="migrated"):
            run("agent", "--name", "x")


class TestIssuingAToken:
    def test_stores_its_hash_only(self) -> None:
        account, _ = get_or_create_account(username="agent")
        token = issue_token(account=account, name="laptop")
        assert AccessToken.objects.get().digest == hash_token(token)

    def test_leaves_the_groups_of_an_account_that_may_already(self) -> None:
        user = User.objects.create(username="person")
        user.user_permissions.add(Permission.objects.get(codename="use_api"))
        issue_token(account=user, name="x")
        assert not user.groups.exists()

    def test_makes_the_group_again_where_it_was_deleted(self) -> None:
        Group.objects.filter(name="agents").delete()
        account, _ = get_or_create_account(username="agent")
        issue_token(account=account, name="x")
        assert User.objects.get().has_perm("sessions_app.use_api")

    def test_cleans_the_name(self) -> None:
        account, _ = get_or_create_account(username="agent")
        issue_token(account=account, name=" a\x00b ")
        assert AccessToken.objects.get().name == "a\ufffdb"

    def test_refuses_an_empty_name(self) -> None:
        account, _ = get_or_create_account(username="agent")
        with pytest.raises(InvalidRequest):
            issue_token(account=account, name="")


class TestAnAccount:
    def test_is_made_once(self) -> None:
        first, created = get_or_create_account(username="agent")
        second, again = get_or_create_account(username="agent")
        assert (created, again, first) == (True, False, second)

    def test_of_a_person_is_left_as_it_is(self) -> None:
        User.objects.create_user("person", password="secret")
        account, created = get_or_create_account(username="person")
        assert not created
        assert account.has_usable_password()

    @pytest.mark.parametrize("username", ["", "a b", "a\x00b", "x" * 151])
    def test_has_a_name_that_an_account_can_have(self, username: str) -> None:
        with pytest.raises(InvalidRequest):
            get_or_create_account(username=username)


class TestTheGroups:
    VIEW = {
        "view_session",
        "view_message",
        "view_toolcall",
        "view_workingmemoryrevision",
        "view_sessionevent",
        "view_run",
    }

    def permissions_of(self, name: str) -> set[str]:
        held = Group.objects.get(name=name).permissions
        return set(held.values_list("codename", flat=True))

    def test_let_agents_use_the_api_and_nothing_else(self) -> None:
        assert self.permissions_of("agents") == {"use_api"}

    def test_let_support_look_and_nothing_else(self) -> None:
        held = self.permissions_of("support")
        assert held >= self.VIEW
        assert {name for name in held if not name.startswith("view_")} == {"read_content"}

    def test_let_operators_look_and_end_sessions_but_write_no_content(self) -> None:
        held = self.permissions_of("operators")
        ends = {"close_session", "expire_session", "resume_session", "delete_session"}
        assert held >= self.VIEW | ends
        assert not held & {"change_session", "change_message", "delete_message"}
        assert not [name for name in held if name.startswith("add_")]
