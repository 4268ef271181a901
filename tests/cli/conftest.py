"""What pytest is told of the command line tests; what they share is in support.py."""
import pytest

pytest.register_assert_rewrite("support")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "measured: asserts how long the program takes, or how much it reads or holds. The limits leave "
                            "room for other tests beside it; -m 'not measured' leaves it out on a machine that has none.")
