"""Every row there is."""
import rows_plain  # noqa: F401
import rows_tiff  # noqa: F401
from rows import ROWS  # noqa: F401
