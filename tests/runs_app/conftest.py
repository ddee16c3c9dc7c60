from tests.domain import desk

__all__ = ["desk"]
