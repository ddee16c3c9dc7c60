"""Who may do what; which role opens which page says `tests/admin_pages.py`."""

import pytest
from django.contrib.auth.models import Permission

from sessions_app.models import Session
from tests.admin import STORED, list_of, make_person, make_whole, read

OPERATIONS = {
    "close": "close_session",
    "expire": "expire_session",
    "resume": "resume_session",
    "remove": "delete_session",
}
TOKENS = "/admin/sessions_app/accesstoken/"
# 302 leads to the login.
OUTSIDE = {"agent": 302, "nobody": 302}


@pytest.fixture
def whole(agent):
    return make_whole(agent)


@pytest.mark.parametrize("name", STORED)
def test_stored_data_has_no_deletion_by_djangos_action(entered, whole, name):
    data = {"action": "delete_selected", "_selected_action": whole.session.pk, "post": "yes"}
    entered("superuser").post(list_of(name), data)
    assert Session.objects.get().status == "ACTIVE"


class TestOperations:
    @pytest.mark.parametrize("operation", OPERATIONS)
    @pytest.mark.parametrize(
        ("role", "status"),
        {"superuser": 200, "operators": 200, "support": 403, "staff": 403, **OUTSIDE}.items(),
    )
    def test_are_for_operators(self, entered, whole, operation, role, status):
        address = f"/admin/sessions_app/session/{operation}/"
        client = entered(role)
        assert client.get(address, {"id": whole.session.pk}).status_code == status
        assert client.post(address, {"id": whole.session.pk}).status_code == status
        assert Session.objects.get().status == "ACTIVE"

    @pytest.mark.parametrize(("operation", "codename"), OPERATIONS.items())
    def test_need_each_its_own_permission(self, entered, whole, operation, codename):
        person = make_person("support")
        person.user_permissions.add(permission(codename))
        client = entered("support")
        for other in OPERATIONS:
            address = f"/admin/sessions_app/session/{other}/"
            expected = 200 if other == operation else 403
            assert client.get(address, {"id": whole.session.pk}).status_code == expected

    def test_need_the_right_to_see_as_well(self, entered, whole):
        person = make_person("staff")
        person.user_permissions.add(permission("close_session"))
        address = "/admin/sessions_app/session/close/"
        assert entered("staff").get(address, {"id": whole.session.pk}).status_code == 403

    def test_show_only_to_those_who_may(self, entered, whole):
        def shown(role):
            page = read(entered(role), whole.page("sessions_app_session"))
            actions = read(entered(role), list_of("sessions_app_session")).of("option")
            return (
                {name for name in OPERATIONS if any(f"/{name}/?id=" in at for at in page.links())},
                {option["value"] for option in actions if option["value"]},
            )

        assert shown("support") == (set(), set())
        # An active session cannot be resumed: no button for it.
        assert shown("operators") == ({"close", "expire", "remove"}, set(OPERATIONS))

    @pytest.mark.parametrize("operation", ["sessions_app_toolcall/settle", "runs_app_run/cancel"])
    @pytest.mark.parametrize(
        ("role", "status"), {"superuser": 200, "operators": 200, "support": 403}.items()
    )
    def test_of_calls_and_runs_are_for_operators(self, entered, whole, operation, role, status):
        name, operation = operation.split("/")
        pk = whole.page(name).split("/")[-3]
        client = entered(role)
        assert client.get(f"{list_of(name)}{operation}/", {"id": pk}).status_code == status


class TestTheIndex:
    def test_shows_each_role_its_own(self, entered, whole):
        def lists(role):
            links = {link.partition("?")[0] for link in read(entered(role), "/admin/").links()}
            return {link for link in links if link.count("/") == 4 and "/password" not in link}

        stored = {list_of(name) for name in STORED}
        assert lists("support") == stored
        assert lists("operators") == stored
        assert lists("superuser") > stored | {TOKENS}
        assert lists("staff") == set()


def permission(codename):
    """Ours: Django's browser sessions have permissions of the same names."""
    return Permission.objects.get(codename=codename, content_type__app_label="sessions_app")
