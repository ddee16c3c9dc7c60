"""Numbers in paths: what names nothing answers like any unknown name (report DATA-04)."""

from sessions_app.api.query import MAX_BIGINT, strict_integer
from sessions_app.errors import NotFound


def number_in_path(text: str) -> int:
    """A sequence or version.

    Raises:
        NotFound: not the plain decimal form of a number that a row can have.
    """
    number = strict_integer(text)
    if number is None or not 0 <= number <= MAX_BIGINT:
        raise NotFound(f"There is no {text[:80]}.")
    return number
