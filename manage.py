#!/usr/bin/env python
import os
import sys

from django.core.management import execute_from_command_line
from environs import EnvError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except EnvError as error:
        # A wrong variable is the operator's to mend: name it, and spare them the traceback.
        sys.exit(f"Configuration error: {error}")


if __name__ == "__main__":
    main()
