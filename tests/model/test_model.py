"""Whatever agents, operators, time and crashes do: what is stored is what a plain model says."""

from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.factories import forget
from tests.model.machine import Machine
from tests.races.invariants import broken


class Checked(Machine):
    """At the end no rule may be broken in any table, and nothing stays."""

    steps = 0

    def check_invariants(self, *arguments: Any, **more: Any) -> None:
        type(self).steps += 1
        super().check_invariants(*arguments, **more)

    def teardown(self) -> None:
        try:
            with connection.cursor() as cursor:

                def select(query: str) -> list[tuple[Any, ...]]:
                    cursor.execute(query)
                    return cursor.fetchall()

                assert broken(select) == {}
        finally:
            forget(self.desk.user)


@pytest.mark.parametrize(
    ("examples", "steps", "always_the_same"),
    [(24, 60, True), pytest.param(150, 80, False, marks=pytest.mark.soak)],
)
def test_what_is_stored_is_what_the_model_says(
    db: None, examples: int, steps: int, always_the_same: bool, say: Any
) -> None:
    Checked.steps = 0
    run_state_machine_as_test(
        Checked,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=always_the_same,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Checked.steps > examples
    say(f"{Checked.steps} steps in {examples} histories on {connection.vendor}")
