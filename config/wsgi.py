import os
from typing import TYPE_CHECKING

from django.core.wsgi import get_wsgi_application

from config import connections  # noqa: F401  its receivers
from config.middleware import ChunkedBodies

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application: "WSGIApplication" = ChunkedBodies(get_wsgi_application())
