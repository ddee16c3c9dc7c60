# `make run` and `make test` need Python 3.11 or newer, make and a package index; they make the rest.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Of pytest: `make pytest ARGS="-k sessions -x"`.
ARGS ?=
JOBS ?= auto
# The kind only: the URL may hold a password.
DATABASE_KIND = $(firstword $(subst :, ,$(DATABASE_URL)) sqlite)
# Checks read no .env, so that they say the same on every machine.
CHECK := DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python

RUN_DEPS := $(VENV)/.requirements
DEV_DEPS := $(VENV)/.requirements-dev

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test lint format types contracts migrations-check schema-check pytest soak bench screenshots demo clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 20
	@echo
	@echo "Settings come from the environment, .env, or the command: make run PORT=9000"

run: $(RUN_DEPS) .env ## serve: migrations, first accounts, worker processes and the sweep
	@exec $(BIN)/python manage.py serve

test: lint types contracts migrations-check schema-check pytest ## all checks, then all tests (SQLite, or DATABASE_URL)
	@echo "== all checks and tests passed"

lint: $(DEV_DEPS) ## ruff: rules and format
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(DEV_DEPS) ## ruff: mend what it can, and format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(DEV_DEPS) ## mypy
	@echo "== types"
	@$(BIN)/mypy

contracts: $(DEV_DEPS) ## who may import whom
	@echo "== import contracts"
	@$(BIN)/lint-imports

migrations-check: $(DEV_DEPS) ## every change of a model has its migration
	@echo "== migrations"
	@$(CHECK) manage.py makemigrations --check --dry-run

schema-check: $(DEV_DEPS) ## the OpenAPI schema is made without a warning
	@echo "== OpenAPI schema"
	@$(CHECK) manage.py spectacular --validate --fail-on-warn --file /dev/null

pytest: $(DEV_DEPS) ## the tests alone, e.g. make pytest ARGS="-k sessions"
	@echo "== tests on $(DATABASE_KIND)"
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS)

soak: $(DEV_DEPS) ## the long tests: a model, fuzzing, crashes and outages (docs/RELIABILITY.md)
	@echo "== soak on $(DATABASE_KIND)"
	@$(BIN)/python -m pytest -m soak -o faulthandler_timeout=3600 $(ARGS)

bench: $(RUN_DEPS) ## speed beside a bare Django view, e.g. make bench ARGS=--quick
	@$(BIN)/python -m benchmarks $(ARGS)

screenshots: $(DEV_DEPS) ## pictures of every page of the console, in screenshots/; ONLY="home runs" takes these
	@$(BIN)/python -m tests.browser.screenshots

demo: $(RUN_DEPS) ## an agent that is killed in the morning and goes on in the afternoon
	@$(BIN)/python examples/demo.py

clean: ## remove the environment and caches; data in var/ and .env stay
	rm -rf $(VENV) .venv-* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# A key of its own for each installation, made once and for this user's eyes only.
.env:
	@umask 077 && $(PYTHON) -c 'import secrets; print("SECRET_KEY=" + secrets.token_urlsafe(48))' > $@.new
	@mv $@.new $@
	@echo "Made .env with a new SECRET_KEY"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; PYTHON=... names another than $(PYTHON)"; exit 1; }
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(RUN_DEPS): requirements.txt | $(BIN)/python
	@echo "Installing requirements.txt"
	@$(PIP) install -r requirements.txt
	@touch $@

$(DEV_DEPS): requirements-dev.txt requirements.txt | $(BIN)/python
	@echo "Installing requirements-dev.txt"
	@$(PIP) install -r requirements-dev.txt
	@touch $@
