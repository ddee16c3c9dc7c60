"""``make bench``: the product beside a bare Django view, on the database of DATABASE_URL.

It fills a database of its own, runs for some minutes on 127.0.0.1 only, and stops by itself.
"""

import argparse
import os
import sys

import django

from . import servers
from .database import fresh_database


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one round (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median counts")
    parser.add_argument("--sessions", type=int, default=200_000, help="in the lists")
    parser.add_argument("--only", default="", metavar="TEXT", help="work whose name contains it")
    parser.add_argument("--quick", action="store_true", help="a look: few rows, short rounds")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds, options.sessions = 1.0, 1, 50_000
    with fresh_database(os.environ.get("DATABASE_URL", "")) as url:
        os.environ.update(servers.environment(url), DJANGO_SETTINGS_MODULE="config.settings")
        django.setup()
        from .run import run  # it imports models, which need the settings

        return run(options)


if __name__ == "__main__":
    sys.exit(main())
