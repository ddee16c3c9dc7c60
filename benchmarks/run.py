"""Start both servers, do all the work, print the tables."""

import os
import platform
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from django.core.management import call_command
from django.db import connection, connections

from sessions_app.models import Session

from . import servers, transfer
from .measure import Result, measure
from .same import differences
from .seed import Seeded, seed
from .work import Work, all_work, console_work, growing_work, lone_work

CLIENTS = (1, 16)
# Sessions that appends go to in turn: more than there are clients, as users are many.
TARGETS = 64

_HEAD = (
    "| work | clients | req/s | reference | **ratio** | p50 ms | p99 ms | ref. p50 | ref. p99 "
    "| CPU ms/req | ref. CPU |\n|---|---|---|---|---|---|---|---|---|---|---|"
)
_LONE_HEAD = "| {} | clients | req/s | p50 ms | p99 ms | CPU ms/req |\n|---|---|---|---|---|---|"


def run(options: Namespace) -> int:
    """Returns 1 if any request failed: then the figures say nothing."""
    lengths = [10, 100, 1_000, 10_000] + ([] if options.quick else [100_000])
    call_command("migrate", verbosity=0)
    seeded = seed(sessions=options.sessions, lengths=lengths, targets=TARGETS)
    _settle_statistics()
    connections.close_all()
    # With the key of this process, by which an operator has logged in.
    environment = dict(os.environ)
    with servers.product(environment) as product, servers.reference(environment) as reference:
        bench = Bench(product, reference, options.seconds, options.rounds, options.only)
        for work in all_work(seeded):
            if found := differences(work, product, reference):
                raise RuntimeError(f"{work.name}: only one side answers {', '.join(found)}")
        _measure_all(bench, seeded, lengths)
        print(
            f"\nPeak memory of all processes: {product.peak_memory / 2**20:.0f} MB; "
            f"reference {reference.peak_memory / 2**20:.0f} MB"
        )
    if bench.failed:
        print(f"\nRequests failed in: {', '.join(bench.failed)}")
    return 1 if bench.failed else 0


def _measure_all(bench: "Bench", seeded: Seeded, lengths: list[int]) -> None:
    """Each table with its head: work beside the reference, pages of the console, growth."""
    print(_title())
    _measure(bench, "## Beside the reference", _HEAD, all_work(seeded), CLIENTS)
    _measure(bench, "## Alone", _LONE_HEAD.format("work"), lone_work(seeded), (1,))
    title = f"## Console ({Session.objects.count():,} sessions)"
    _measure(bench, title, _LONE_HEAD.format("page"), console_work(seeded), CLIENTS)
    if bench.only in "files":
        print(f"\n## Files (1 client, once)\n\n{transfer.HEAD}", flush=True)
        for moved in transfer.move_there_and_back(bench.product, seeded, max(lengths)):
            print(moved.row(), flush=True)
    growing = [work for length in lengths for work in growing_work(seeded, length)]
    _measure(bench, "## Growth", _HEAD, growing, (1,))


def _measure(
    bench: "Bench", title: str, head: str, works: list[Work], clients: Iterable[int]
) -> None:
    """One table, of the work that was asked for."""
    asked = [work for work in works if bench.only in work.name]
    if asked:
        print(f"\n{title}\n\n{head}")
    for number in clients:
        for work in asked:
            bench.do(work, number)


@dataclass(slots=True)
class Bench:
    """The two servers, and how long each is looked at."""

    product: servers.Server
    reference: servers.Server
    seconds: float
    rounds: int
    only: str
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
        if result.product.errors or (result.reference and result.reference.errors):
            self.failed.append(result.name)


def _row(result: Result) -> str:
    mine, theirs = result.product, result.reference
    if theirs is None:
        return (
            f"| {result.name} | {result.clients} | {mine.per_second:,.1f} | {mine.p50:.1f} "
            f"| {mine.p99:.1f} | {mine.cpu_ms:.2f} |"
        )
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
