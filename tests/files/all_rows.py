"""Every row there is, in the order of the table."""

# ruff: noqa: F401
import rows_plain
import rows_tiff
import rows_web
import rows_modern
import rows_science
import rows_orientation
import rows_odd
import rows_matrix
from rows import ROWS
