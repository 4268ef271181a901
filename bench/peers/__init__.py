"""Other libraries on the same images: for a case of ours, the calls that come nearest to it."""
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Peer:
    library: str  # "OpenCV"
    function: str  # "bilateralFilter"
    type: str  # of the samples that it is given
    one_thread: bool  # it has no threads
    call: Callable  # (image, out) -> result; `out` has the image's shape and type and may be used
    setting: str = ""  # tells two calls of one function apart

    @property
    def name(self):
        return f"{self.library} {self.type}" + (", one thread" if self.one_thread else "")

    @property
    def key(self):
        return f"{self.library}.{self.function}({self.setting}) {self.type}"


class Peers:
    """Those that are installed; `missing` says in one line which are not."""

    def __init__(self, threads):
        self.libraries, self.versions, missing = [], {}, []
        for name, load in (("OpenCV", self._opencv), ("scikit-image", self._scikit_image)):
            try:
                library = load(threads)
            except ImportError as error:
                missing.append(f"{name} ({error})")
                continue
            self.libraries.append(library)
            self.versions[name] = library.version
        self.missing = "not installed: " + "; ".join(missing) if missing else ""

    @staticmethod
    def _opencv(threads):
        from . import opencv
        return opencv.OpenCv(threads)

    @staticmethod
    def _scikit_image(threads):
        from . import scikit_image
        return scikit_image.ScikitImage(threads)

    def of(self, case):
        return [peer for library in self.libraries for peer in library.peers_of(case)]
