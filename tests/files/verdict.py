"""What is said of a row."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """right, error (the one that was wanted), wrong, poor or skipped; and why, or what the program said."""

    word: str
    why: str = ""
