"""The least Django that can answer: no apps, no middleware, the product's own database settings."""

import os

os.environ.setdefault("SECRET_KEY", "guards-nothing-in-a-benchmark-on-the-loopback-address")

from config.settings import DATABASES  # noqa: F401

SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = ["*"]
USE_TZ = True
INSTALLED_APPS: list[str] = []
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "benchmarks.reference.urls"
