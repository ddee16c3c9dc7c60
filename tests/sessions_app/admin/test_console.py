"""The frame of all pages for people: what a browser may run on them, and who may read."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from sessions_app.admin.rights import RIGHTS, name_of, offered
from sessions_app.console.navigation import SECTIONS
from sessions_app.console.registry import registered_pages
from sessions_app.models import ContentRead
from sessions_app.pages.base import ANY_STAFF
from tests.admin import STORED, list_of, make_person, make_whole, read


class TestAnOwnPage:
    @pytest.mark.parametrize("page", registered_pages())
    def test_declares_who_may_see_it(self, db, page):
        if page.permission == ANY_STAFF:
            return
        label, codename = page.permission.split(".")
        known = Permission.objects.filter(content_type__app_label=label, codename=codename)
        assert known.exists()

    @pytest.mark.parametrize("entry", [entry for section in SECTIONS for entry in section.entries])
    def test_in_the_sidebar_needs_a_right_that_exists(self, db, entry):
        assert reverse(f"admin:{entry.page}")
        if entry.permission is not None:
            label, codename = entry.permission.split(".")
            known = Permission.objects.filter(content_type__app_label=label, codename=codename)
            assert known.exists()

    @pytest.mark.parametrize("address", ["/admin/", *map(list_of, STORED)])
    def test_has_nothing_that_its_policy_forbids(self, entered, agent, address):
        whole = make_whole(agent)
        client = entered("superuser")
        pages = [address] if address == "/admin/" else [address, whole.page(address_name(address))]
        for each in pages:
            assert "unsafe" not in client.get(each)["Content-Security-Policy"]
            page = read(client, each)
            assert page.scripts.strip() == ""
            assert not [attrs for _tag, attrs in page.tags if "style" in attrs]


def address_name(address):
    return "_".join(address.strip("/").split("/")[1:])


class TestThePolicy:
    def test_of_the_skins_pages_allows_what_the_skin_needs(self, entered):
        policy = entered("superuser").get("/admin/auth/user/")["Content-Security-Policy"]
        assert "script-src 'self' 'unsafe-eval'" in policy

    def test_of_the_api_allows_nothing(self, api, agent):
        response = api.get("/api/v1/sessions")
        assert "default-src 'none'" in response["Content-Security-Policy"]
        assert "self" not in response["Content-Security-Policy"]

    @pytest.mark.parametrize("address", ["/docs", "/api/v1/docs"])
    def test_of_the_schemas_reader_lets_it_work(self, client, address):
        response = client.get(address)
        assert "script-src 'self';" in response["Content-Security-Policy"] + ";"
        assert "<script>" not in response.content.decode()

    def test_of_other_answers_allows_nothing(self, client):
        assert "default-src 'none'" in client.get("/nothing")["Content-Security-Policy"]


class TestReadingContent:
    @pytest.fixture
    def whole(self, agent):
        return make_whole(agent, text="a secret of the customer", title="A title")

    CONTENT = STORED[1:4] + STORED[5:]

    @pytest.fixture
    def manager(self, db):
        """Somebody who may see and act, and not read."""
        person = make_person("operators")
        group = person.groups.get()
        group.permissions.remove(Permission.objects.get(codename="read_content"))
        return person

    @pytest.mark.parametrize("name", CONTENT)
    def test_is_for_those_who_may(self, entered, whole, manager, name):
        page = read(entered("operators"), whole.page(name))
        assert page.of("pre") == []
        assert "may not read what sessions contain" in page.words()
        assert not [link for link in page.links() if "/download/" in link]
        for document in ("body", "content", "arguments", "memory", "input"):
            download = whole.page(name).replace("/change/", f"/download/{document}/")
            assert entered("operators").get(download).status_code == 403
        assert not ContentRead.objects.exists()

    @pytest.mark.parametrize("name", CONTENT)
    def test_is_written_down_once_a_visit(self, entered, whole, name):
        client = entered("support")
        for _ in range(3):
            assert read(client, whole.page(name)).of("pre")
        noted = ContentRead.objects.get()
        assert (noted.reader, noted.session) == ("a-support", whole.session)

    def test_of_lists_runs_and_events_is_none(self, entered, whole):
        client = entered("support")
        for name in STORED:
            read(client, list_of(name))
        for tab in ("events", "runs"):
            read(client, f"/admin/sessions/{whole.session.pk}/{tab}/")
        assert not ContentRead.objects.exists()

    def test_is_known_to_administrators(self, entered, whole):
        read(entered("support"), whole.page("sessions_app_message"))
        page = read(entered("administrators"), "/admin/sessions_app/contentread/")
        assert "a-support" in page.words()
        assert entered("operators").get("/admin/sessions_app/contentread/").status_code == 403


class TestAdministrators:
    PAGES = {
        "/admin/auth/user/": 200,
        "/admin/auth/user/add/": 200,
        "/admin/auth/group/": 200,
        "/admin/auth/group/add/": 403,
        "/admin/sessions_app/accesstoken/": 200,
        "/admin/sessions_app/accesstoken/add/": 200,
        "/admin/sessions_app/session/": 403,
        "/admin/sessions_app/message/": 403,
        "/admin/runs_app/run/": 403,
    }

    @pytest.mark.parametrize(("address", "status"), PAGES.items())
    def test_see_accounts_and_tokens_and_no_sessions(self, entered, address, status):
        assert entered("administrators").get(address).status_code == status

    def test_cannot_make_themselves_superusers(self, entered):
        client = entered("administrators")
        person = make_person("administrators")
        page = read(client, f"/admin/auth/user/{person.pk}/change/")
        names = {attrs.get("name") for _tag, attrs in page.tags}
        assert "is_staff" in names
        assert not names & {"is_superuser", "user_permissions"}

    @pytest.mark.parametrize("page", ["change", "delete", "password"])
    def test_cannot_touch_a_superuser(self, entered, page):
        boss = make_person("superuser")
        client = entered("administrators")
        address = f"/admin/auth/user/{boss.pk}/{page}/"
        assert client.post(address, {"password1": "x", "password2": "x"}).status_code == 403


class TestRights:
    def test_are_all_there(self, db):
        assert offered().count() == len(RIGHTS)
        assert sorted(map(name_of, offered())) == sorted(map(str, RIGHTS.values()))

    def test_hold_all_that_a_group_of_ours_has(self, db):
        for permission in Permission.objects.filter(group__isnull=False):
            assert name_of(permission)

    def test_are_given_by_a_form(self, entered):
        client = entered("superuser")
        group = Group.objects.get(name="agents")
        page = read(client, f"/admin/auth/group/{group.pk}/change/")
        boxes = [box for box in page.of("input") if box.get("name") == "permissions"]
        assert len(boxes) == len(RIGHTS)
        wanted = [permission.pk for permission in offered()[:2]]
        data = {"name": "agents", "permissions": wanted}
        assert client.post(f"/admin/auth/group/{group.pk}/change/", data).status_code == 302
        assert {permission.pk for permission in group.permissions.all()} == set(wanted)


class TestTheLanguage:
    def test_is_switched_on_the_page_and_stays(self, entered):
        client = entered("support")
        data = {"language": "zh-hans", "next": "/admin/"}
        assert client.post("/admin/language/", data)["Location"] == "/admin/"
        assert read(client, "/admin/").of("html")[0]["lang"] == "zh-hans"

    def test_is_switched_before_one_has_logged_in(self, db):
        client = Client()
        client.post("/admin/language/", {"language": "zh-hans", "next": "/admin/login/"})
        page = read(client, "/admin/login/")
        assert page.of("html")[0]["lang"] == "zh-hans"
        assert "用户名" in page.words()

    def test_leads_to_no_other_host(self, client):
        data = {"language": "zh-hans", "next": "https://elsewhere.example/"}
        assert client.post("/admin/language/", data)["Location"] == "/"
