from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django import DjangoDbBlocker

from tests.factories import forget


@pytest.fixture
def db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Instead of pytest-django's: no transaction around the test, since what dies must lose its own
    and nothing else."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture
def account(db: None) -> Iterator[User]:
    """Nothing of it stays."""
    account = User.objects.create_user("mortal")
    yield account
    forget(account)
