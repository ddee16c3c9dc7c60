"""The real settings, without .env: a developer's own settings must not decide what passes.

DATABASE_URL of the environment chooses the database that the suite runs on.
"""

import os

os.environ.update(
    ENV_FILE="",
    SECRET_KEY="a-key-for-tests-that-guards-nothing-at-all-0123456789",
    DEBUG="false",
    HTTPS="false",
    LOG_LEVEL="WARNING",
    TOKEN_CACHE_SECONDS="0",
)

from config.settings import *  # noqa: F403

# Tests make many accounts; a password's hash may be cheap here.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Each test client loads the middleware anew, which would then walk through all static files.
WHITENOISE_AUTOREFRESH = True
REST_FRAMEWORK = {
    **REST_FRAMEWORK,  # noqa: F405
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "TEST_REQUEST_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
