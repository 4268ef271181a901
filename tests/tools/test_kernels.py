"""tools/kernels: more kernel instances than recorded are an error."""
import importlib.machinery
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("kernels", str(ROOT / "tools/kernels"))
kernels = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernels", loader))
loader.exec_module(kernels)

SYMBOLS = """\
0000000000000b40 T _Z21__device_stub__Z3onef
0000000000000008 b _ZGVZ21__device_stub__Z3onefE5__tmp
0000000000000018 b _ZZ21__device_stub__Z3onefE5__tmp
0000000000000010 b _ZZ21__device_stub__Z3onefE8__handle
0000000000000028 b _ZGVZL25__device_stub__Z3twoIiEvT_E5__tmp
0000000000000030 b _ZZL25__device_stub__Z3twoIiEvT_E5__tmp
0000000000000038 b _ZZL25__device_stub__Z3twoIiEvT_E8__handle
0000000000000000 T _Z4hostv
"""


class TestKernels:
    def test_instances_are_counted_once(self):
        assert kernels.count_stubs(SYMBOLS) == 2

    def test_sources_are_found_from_their_objects(self):
        build = pathlib.Path("/b")
        assert kernels.source_of(build / "CMakeFiles/ungrain.dir/src/cuda/convert.cu.o", build) == "src/cuda/convert.cu"
        assert kernels.source_of(build / "study/CMakeFiles/ungrain-study.dir/nlm/02_naive.cu.o", build) == "study/nlm/02_naive.cu"

    def test_growth_is_told_from_shrinking(self):
        grown, shrunk = kernels.compare({"a.cu": 3, "b.cu": 2, "c.cu": 1, "new.cu": 1}, {"a.cu": 2, "b.cu": 2, "c.cu": 5})
        assert grown == ["a.cu: 3 kernel instances, 2 recorded", "new.cu: 1 kernel instances, 0 recorded"]
        assert shrunk == ["c.cu: 1 kernel instances, 5 recorded"]

    def test_the_table_is_read_as_it_is_written(self):
        counts = {"src/a.cu": 12, "study/b.cu": 3}
        assert kernels.read(kernels.write(counts)) == counts

    def test_every_source_is_recorded(self):
        sources = {path.relative_to(ROOT).as_posix() for folder in ("src", "study", "bench")
                   for path in (ROOT / folder).rglob("*.cu")}
        assert set(kernels.read(kernels.TABLE.read_text())) == sources
