"""A small web project that does not start, written into a folder for the demo.

Nothing is installed and no network is used. `wheels/` holds stand-ins of a few lines for Flask
and requests, and `start.py` stands in for `pip install -r requirements.txt` and `flask run`: it
makes importable what requirements.txt names, and nothing else. The fault is real: app.py imports
requests, requirements.txt does not name it, and Python refuses to import it.
"""

from pathlib import Path

README = """\
# Bookshop

    python start.py

This is a demonstration: `wheels/flask` and `wheels/requests` are stand-ins of a few lines, not the
real packages. `start.py` takes from there what requirements.txt names, as pip would from an index.
"""

APP = """\
import requests
from flask import Flask

app = Flask(__name__)


@app.get("/")
def index():
    return "The bookshop is open"


@app.get("/rates")
def rates():
    return requests.get("https://rates.example/today.json", timeout=5).json()
"""

START = '''\
"""Start the app with what requirements.txt names, and nothing else, and ask it for one page."""

import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parent
for name in re.findall(r"^[A-Za-z0-9_-]+", (root / "requirements.txt").read_text(), re.M):
    sys.path.append(str(root / "wheels" / name.lower()))

from app import app

print("started: GET / ->", *app.answer("/"))
'''

FLASK = '''\
"""A stand-in for Flask: it knows routes, and answers them without a network."""


class Flask:
    def __init__(self, name):
        self.name = name
        self.views = {}

    def get(self, path):
        def register(view):
            self.views[path] = view
            return view

        return register

    def answer(self, path):
        return 200, self.views[path]()
'''

REQUESTS = '''\
"""A stand-in for requests: it can be imported, which is all that starting the app asks of it."""


def get(url, timeout=None):
    raise RuntimeError("this stand-in fetches nothing")
'''

FILES = {
    "README.md": README,
    "app.py": APP,
    "requirements.txt": "Flask==3.1.2\n",
    "start.py": START,
    "wheels/flask/flask.py": FLASK,
    "wheels/requests/requests.py": REQUESTS,
}


def write_project(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
