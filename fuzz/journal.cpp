// Lines of the journal that --resume reads.
#include "journal.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ungrain::cli::parse_journal_line({reinterpret_cast<const char*>(data), size});
  return 0;
}
