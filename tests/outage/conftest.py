import os

import pytest


@pytest.fixture
def outage_seconds() -> float:
    """How long a database is away; OUTAGE_SECONDS shortens it for who works on these tests."""
    return float(os.environ.get("OUTAGE_SECONDS", "60"))
