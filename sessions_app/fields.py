"""The column type in which client JSON is stored."""

from typing import Any

from django.db import models

from .jsontext import JSONText


class JSONTextField(models.TextField):
    """JSON stored as its text, read as `JSONText`.

    Not ``jsonb``: that reorders keys and rewrites numbers, and what a client sent must come back
    as it was (contract, "Values survive").
    """

    # For the type checker's Django plugin: what the attribute takes and gives.
    _pyi_private_set_type: JSONText  # type: ignore[assignment]
    _pyi_private_get_type: JSONText  # type: ignore[assignment]

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> JSONText | None:
        return None if value is None else JSONText(value)

    def to_python(self, value: Any) -> JSONText | None:
        return None if value is None else JSONText.of(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else JSONText.of(value).text

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""
