"""Interleaved rounds of one piece of work on both servers, and what came of them."""

from dataclasses import dataclass
from statistics import median

from .load import Measured, Requests, drive
from .servers import Server
from .work import Work


@dataclass(frozen=True, slots=True)
class Side:
    """Medians over the rounds; times in milliseconds."""

    per_second: float
    p50: float
    p99: float
    cpu_ms: float
    errors: int


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    clients: int
    product: Side
    reference: Side | None

    @property
    def ratio(self) -> float | None:
        """Of requests per second: 1 is as fast as the bare view."""
        return self.product.per_second / self.reference.per_second if self.reference else None


def measure(
    work: Work, product: Server, reference: Server, *, clients: int, seconds: float, rounds: int
) -> Result:
    """Alternate between the two, so that both meet the same weather."""
    pairs = [(product, work.product)]
    if work.reference is not None:
        pairs.append((reference, work.reference))
    sides: list[tuple[list[Measured], list[float]]] = [([], []) for _ in pairs]
    for server, requests in pairs:
        drive(server.port, requests, clients=clients, seconds=seconds / 4)
    number = 0
    for _ in range(rounds):
        for (server, requests), (measured, costs) in zip(pairs, sides, strict=True):
            once, cost = _round(server, requests, clients, seconds, start=number)
            measured.append(once)
            costs.append(cost)
            number += len(once.latencies)
    mine, *others = (_side(*side) for side in sides)
    return Result(work.name, clients, mine, next(iter(others), None))


def _round(
    server: Server, requests: Requests, clients: int, seconds: float, *, start: int
) -> tuple[Measured, float]:
    before = server.cpu_seconds()
    measured = drive(server.port, requests, clients=clients, seconds=seconds, start=start)
    cost = 1000 * (server.cpu_seconds() - before) / len(measured.latencies)
    return measured, cost


def _side(measured: list[Measured], costs: list[float]) -> Side:
    return Side(
        per_second=median(each.per_second for each in measured),
        p50=median(each.percentile(0.5) for each in measured),
        p99=median(each.percentile(0.99) for each in measured),
        cpu_ms=median(costs),
        errors=sum(each.errors for each in measured),
    )
