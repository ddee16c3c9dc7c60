"""Start both servers, do all the work, print the tables."""

import os
import platform
from argparse import Namespace
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from django.core.management import call_command
from django.db import connection, connections

from . import servers
from .measure import Result, measure
from .same import differences
from .seed import seed
from .work import Work, all_work, growing_work

CLIENTS = (1, 16)
# Sessions that appends go to in turn: more than there are clients, as users are many.
TARGETS = 64

_HEAD = (
    "| work | clients | req/s | reference | **ratio** | p50 ms | p99 ms | ref. p50 | ref. p99 "
    "| CPU ms/req | ref. CPU |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def run(options: Namespace, url: str) -> int:
    """Returns 1 if any request failed: then the figures say nothing."""
    lengths = [10, 100, 1_000, 10_000] + ([] if options.quick else [100_000])
    call_command("migrate", verbosity=0)
    seeded = seed(sessions=options.sessions, lengths=lengths, targets=TARGETS)
    _settle_statistics()
    connections.close_all()
    environment = servers.environment(url)
    with servers.product(environment) as product, servers.reference(environment) as reference:
        bench = Bench(product, reference, options.seconds, options.rounds)
        for work in all_work(seeded):
            if found := differences(work, product, reference):
                raise RuntimeError(f"{work.name}: only one side answers {', '.join(found)}")
        print(_title(), _HEAD, sep="\n\n")
        for clients in CLIENTS:
            for work in all_work(seeded):
                bench.do(work, clients)
        print(f"\n## Growth (1 client)\n\n{_HEAD}")
        for length in lengths:
            for work in growing_work(seeded, length):
                bench.do(work, 1)
        print(
            f"\nPeak memory of all processes: {product.peak_memory / 2**20:.0f} MB; "
            f"reference {reference.peak_memory / 2**20:.0f} MB"
        )
    if bench.failed:
        print(f"\nRequests failed in: {', '.join(bench.failed)}")
    return 1 if bench.failed else 0


@dataclass(slots=True)
class Bench:
    """The two servers, and how long each is looked at."""

    product: servers.Server
    reference: servers.Server
    seconds: float
    rounds: int
    failed: list[str] = field(default_factory=list)

    def do(self, work: Work, clients: int) -> None:
        """Measure one piece of work and print its row."""
        result = measure(
            work,
            self.product,
            self.reference,
            clients=clients,
            seconds=self.seconds,
            rounds=self.rounds,
        )
        print(_row(result), flush=True)
        if result.product.errors or result.reference.errors:
            self.failed.append(result.name)


def _row(result: Result) -> str:
    mine, theirs = result.product, result.reference
    return (
        f"| {result.name} | {result.clients} | {mine.per_second:,.0f} | {theirs.per_second:,.0f} "
        f"| **{result.ratio:.2f}** | {mine.p50:.1f} | {mine.p99:.1f} | {theirs.p50:.1f} "
        f"| {theirs.p99:.1f} | {mine.cpu_ms:.2f} | {theirs.cpu_ms:.2f} |"
    )


def _title() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return (
        f"# {connection.vendor}, {datetime.now(UTC):%Y-%m-%d}\n\n{os.cpu_count()} cores ({model}), "
        f"Python {platform.python_version()}, {servers.WORKERS} workers with {servers.THREADS} "
        "threads on either side"
    )


def _settle_statistics() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
