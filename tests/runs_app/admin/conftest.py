from tests.admin import agent, entered, operator

__all__ = ["agent", "entered", "operator"]
