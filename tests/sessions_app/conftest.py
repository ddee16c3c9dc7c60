from tests.domain import desk
from tests.moves import account, operator

__all__ = ["account", "desk", "operator"]
