"""How PostgreSQL keeps what is long."""

from importlib import import_module

import pytest
from django.db import connection

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL"),
]


def has_lz4() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'lz4' = ANY (enumvals) FROM pg_settings"
            " WHERE name = 'default_toast_compression'"
        )
        return bool(cursor.fetchone()[0])


MIGRATION = import_module("sessions_app.migrations.0029_compress_quickly")


@pytest.mark.parametrize(
    ("table", "column"),
    [(table, column) for table, columns in MIGRATION._COLUMNS.items() for column in columns],
)
def test_what_is_long_is_compressed_quickly(table: str, column: str) -> None:
    if not has_lz4():
        pytest.skip("this server was built without LZ4")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attcompression FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attname = %s",
            [table, column],
        )
        assert cursor.fetchone() == ("l",)
