from tests.admin import agent, entered

__all__ = ["agent", "entered"]
