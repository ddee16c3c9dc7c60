"""All settings, all from the environment; a variable that cannot be right stops the start.

The variables are read from the process's environment first and then from the file ``.env`` beside
``manage.py`` (``ENV_FILE`` names another file; empty: none). README.md has the table.
"""

from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy as _
from environs import Env, EnvError, validate

from config.caches import cache_options
from config.databases import postgresql_options, sqlite_options
from config.loggers import logging_config
from config.validators import known_time_zone, long_or_none, usable_tokenizer

BASE_DIR = Path(__file__).resolve().parent.parent

env = Env()
if (env_file := env.str("ENV_FILE", "")) and not Path(env_file).is_file():
    raise EnvError(f"ENV_FILE names {env_file}, and there is no such file.")
if env_file := env.str("ENV_FILE", str(BASE_DIR / ".env")):
    env.read_env(env_file, recurse=False)

positive = validate.Range(min=1)
not_negative = validate.Range(min=0)


# --- Who may talk to the server, and over what ---

DEBUG = env.bool("DEBUG", False)
# A known key lets anyone forge an operator's login, so only DEBUG has a default.
SECRET_KEY = (
    env.str("SECRET_KEY", "only-for-debugging")
    if DEBUG
    else env.str("SECRET_KEY", validate=validate.Length(min=32))
)
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"], validate=validate.Length(min=1)
)
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])

HTTPS = env.bool("HTTPS", False)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
# The server itself speaks plain HTTP; with HTTPS a proxy stands before it and sets this header.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
X_FRAME_OPTIONS = "DENY"

# How many proxies stand before the server, each of which adds to X-Forwarded-For.
PROXIES = env.int("PROXIES", 0, validate=not_negative)
# For one name from one address, in 15 minutes; 0: any number.
LOGIN_ATTEMPTS = env.int("LOGIN_ATTEMPTS", 10, validate=not_negative)
SESSION_COOKIE_AGE = env.int("LOGIN_HOURS", 12, validate=positive) * 3600
# Of one account; 0: any number.
REQUESTS_PER_MINUTE = env.int("REQUESTS_PER_MINUTE", 0, validate=not_negative)
# Where both are counted; each process by itself, unless it is one that they share.
CACHES = {"default": cache_options(dict(env.dj_cache_url("CACHE_URL", "locmem://")))}

# --- Server processes ---

HOST = env.str("HOST", "127.0.0.1")
PORT = env.int("PORT", 8000, validate=validate.Range(min=1, max=65535))
WORKERS = env.int("WORKERS", 2, validate=positive)
THREADS = env.int("THREADS", 4, validate=positive)
# Streams that may be open in each server process; none of them takes one of its threads.
MAX_STREAMS = env.int("MAX_STREAMS", 50, validate=positive)
SWEEP_INTERVAL = env.int("SWEEP_INTERVAL", 10, validate=positive)

# How long a revoked token may still work; 0 asks the database at each request.
TOKEN_CACHE_SECONDS = env.int("TOKEN_CACHE_SECONDS", 5, validate=not_negative)

# What Prometheus reads /metrics with; none: nothing is counted, and nothing is there.
METRICS_TOKEN = env.str("METRICS_TOKEN", "", validate=long_or_none)

# --- Limits that clients meet ---

MAX_BODY_BYTES = env.int("MAX_BODY_BYTES", 10 * 1024 * 1024, validate=positive)
MAX_IMPORT_BYTES = env.int("MAX_IMPORT_BYTES", 2 * 1024**3, validate=positive)
MAX_PAGE_BYTES = env.int("MAX_PAGE_BYTES", 16 * 1024 * 1024, validate=positive)
MAX_MESSAGES_PER_BATCH = env.int("MAX_MESSAGES_PER_BATCH", 1000, validate=positive)
MAX_TOOL_CALLS_PER_BATCH = env.int("MAX_TOOL_CALLS_PER_BATCH", 10_000, validate=positive)
MAX_METADATA_BYTES = env.int("MAX_METADATA_BYTES", 16 * 1024, validate=positive)
MAX_WORKING_MEMORY_BYTES = env.int("MAX_WORKING_MEMORY_BYTES", 256 * 1024, validate=positive)
# For what a window of messages may hold: an estimate by bytes, unless a tokenizer is installed.
TOKENIZER = env.str("TOKENIZER", "", validate=usable_tokenizer)
MAX_JSON_DEPTH = env.int("MAX_JSON_DEPTH", 100, validate=positive)
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

IDEMPOTENCY_TTL_HOURS = env.int("IDEMPOTENCY_TTL_HOURS", 24, validate=positive)
DEFAULT_LEASE_SECONDS = env.int(
    "DEFAULT_LEASE_SECONDS", 300, validate=validate.Range(min=10, max=86_400)
)
PENDING_TTL_HOURS = env.int("PENDING_TTL_HOURS", 24, validate=positive)
WAITING_TTL_DAYS = env.int("WAITING_TTL_DAYS", 7, validate=positive)

# --- Database ---

DB_LOCK_TIMEOUT = env.int("DB_LOCK_TIMEOUT", 10, validate=positive)
DB_PREPARED_STATEMENTS = env.bool("DB_PREPARED_STATEMENTS", True)
DB_STATEMENT_TIMEOUT = env.int("DB_STATEMENT_TIMEOUT", 30, validate=not_negative)
SQLITE_SYNCHRONOUS = env.str(
    "SQLITE_SYNCHRONOUS", "FULL", validate=validate.OneOf(["NORMAL", "FULL", "EXTRA"])
)


def _database() -> dict[str, Any]:
    database: dict[str, Any] = dict(env.dj_db_url("DATABASE_URL", "sqlite:///var/dossier.sqlite3"))
    if database["ENGINE"] == "django.db.backends.sqlite3":
        if database["NAME"] != ":memory:":
            # A relative name means the same file whatever folder the command is called from.
            database["NAME"] = str(BASE_DIR / database["NAME"])
            Path(database["NAME"]).parent.mkdir(parents=True, exist_ok=True)
        database["OPTIONS"] = sqlite_options(
            lock_timeout=DB_LOCK_TIMEOUT, synchronous=SQLITE_SYNCHRONOUS
        )
    elif database["ENGINE"] == "django.db.backends.postgresql":
        database["OPTIONS"] = postgresql_options(
            database.get("OPTIONS", {}),
            lock_timeout=DB_LOCK_TIMEOUT,
            statement_timeout=DB_STATEMENT_TIMEOUT,
            prepare=DB_PREPARED_STATEMENTS,
        )
    else:
        raise EnvError("DATABASE_URL must begin with sqlite:// or postgres://")
    # A thread keeps its connection (None: for ever); `config.connections` notices a dead one.
    database["CONN_MAX_AGE"] = env.int("DB_CONN_MAX_AGE", None)
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Application ---

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "config.admin_site.ConsoleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "sessions_app",
    "runs_app",
]

MIDDLEWARE = [
    "config.middleware.RequestIdMiddleware",
    "config.policy_middleware.ContentSecurityPolicyMiddleware",
    "config.middleware.TrailingSlashMiddleware",
    *(["config.metrics_middleware.MetricsMiddleware"] if METRICS_TOKEN else []),
    "config.health.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.APIMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.middleware.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# --- Languages and time ---

USE_TZ = True
TIME_ZONE = env.str("TIME_ZONE", "UTC", validate=known_time_zone)
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LANGUAGE_CODE = env.str(
    "LANGUAGE_CODE", "en", validate=validate.OneOf([code for code, _name in LANGUAGES])
)
LOCALE_PATHS = [BASE_DIR / "locale"]

# --- Static files: served from where the packages keep them; nothing has to be collected ---

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# --- The console's skin; its colours are in static/console/tokens.css ---

UNFOLD = {"SITE_TITLE": "Dossier", "SITE_HEADER": "Dossier", "SHOW_VIEW_ON_SITE": False}

# --- REST API ---

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["config.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["config.authentication.MayUseAPI"],
    "DEFAULT_THROTTLE_CLASSES": (
        ["config.throttling.AccountThrottle"] if REQUESTS_PER_MINUTE else []
    ),
    "DEFAULT_PARSER_CLASSES": ["config.json_http.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["config.json_http.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.json_http.AlwaysJSON",
    "DEFAULT_PAGINATION_CLASS": "config.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "sessions_app.api.schema.DomainSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "config.problems.exception_handler",
}

# Its own migrations make the table of the token model that ours replaces.
MIGRATION_MODULES = {"knox": None}
KNOX_TOKEN_MODEL = "sessions_app.AccessToken"  # noqa: S105 (a model's name)
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    # Agents run unattended: a token lives until it is revoked, unless it was given an end.
    "TOKEN_TTL": None,
    "AUTO_REFRESH": False,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Dossier",
    "DESCRIPTION": "Sessions of AI agents: raw history, working memory, tool calls and runs.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "(/api)?/v1",
    "PATH_CONVERTER_OVERRIDES": {"conversation": {"type": "string"}},
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,
    # Choices stand where they are used: names made up from "status" and "type" say nothing.
    "POSTPROCESSING_HOOKS": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- Logs: JSON lines to stderr, never a body, a query string, a token or an error's message ---

LOG_LEVEL = env.str(
    "LOG_LEVEL",
    "INFO",
    validate=validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
)
# A statement that takes so long is logged, without its values; 0: none is.
SLOW_QUERY_MS = env.int("SLOW_QUERY_MS", 1000, validate=not_negative)
LOGGING = logging_config(LOG_LEVEL)
