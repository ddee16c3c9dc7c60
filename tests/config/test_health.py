import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/healthz"])
class TestHealthz:
    def test_answers_without_a_database_or_an_account(self, client: Client, path):
        response = client.get(path)
        assert response.status_code == 200
        assert response.json() == {"status": "ok"}
        assert "no-store" in response.headers["Cache-Control"]

    def test_answers_whoever_asks_by_address(self, client: Client, path):
        assert client.get(path, headers={"host": "10.0.0.7:8000"}).status_code == 200

    def test_only_answers_reads(self, client: Client, path):
        assert client.post(path).status_code == 405


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/readyz", "/api/v1/readyz"])
class TestReadyz:
    def test_is_200_when_the_database_is_as_new_as_the_code(self, client: Client, path):
        response = client.get(path)
        assert response.status_code == 200
        assert response.json() == {"status": "ok", "database": "ok", "unapplied_migrations": 0}

    def test_is_503_while_a_migration_is_missing(self, client: Client, path):
        MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
        response = client.get(path)
        assert response.status_code == 503
        assert response.json()["unapplied_migrations"] == 1
        assert response.headers["Retry-After"] == "1"

    def test_is_503_without_a_database_and_does_not_say_why(self, client: Client, path):
        with connection.execute_wrapper(_refuse):
            response = client.get(path)
        assert response.status_code == 503
        assert response.json() == {"status": "unavailable", "database": "unreachable"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/sessions_app/session/"])
def test_a_page_without_a_database_is_503_and_does_not_say_why(client: Client, path):
    client.raise_request_exception = False
    client.cookies["sessionid"] = "s" * 32
    with connection.execute_wrapper(_refuse):
        response = client.get(path, headers={"accept-language": "zh-hans"})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert 'lang="zh-hans"' in response.content.decode()
    assert "password" not in response.content.decode()


def _refuse(*_args):
    raise OperationalError("password of the database")
