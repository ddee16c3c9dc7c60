"""Which loggers write, and from which level on; how a line looks: `config.logs`."""

from typing import Any


def logging_config(level: str) -> dict[str, Any]:
    """What `logging.config.dictConfig` takes."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "config.logs.make_formatter"}},
        "handlers": {"stderr": {"class": "config.logs.LineHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Without Django's own handlers: mail to admins, and a second line on the console.
            "django": {"handlers": [], "level": level},
            # SQL carries what people wrote.
            "django.db.backends": {"level": "INFO"},
            # Each request has its line already.
            "django.request": {"level": "ERROR"},
            # The answer says it, and scanners would fill the log.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "_granian": {"level": "WARNING"},
        },
    }
