from __future__ import annotations

from tests.grpc.conftest import own

__all__ = ["own"]
