import os
from typing import TYPE_CHECKING

from django.core.wsgi import get_wsgi_application

from config import connections  # noqa: F401  its receivers
from config.middleware import WholeBodies

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application: "WSGIApplication" = WholeBodies(get_wsgi_application())
