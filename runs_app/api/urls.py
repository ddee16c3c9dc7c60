"""Paths of runs, and of what needs both a session and its runs."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
