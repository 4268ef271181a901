// ungrain devices: the devices of this machine, and why a missing one is missing.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "json_text.h"
#include "output.h"
#include "ungrain/denoiser.h"

namespace ungrain::cli {

int devices_command(const Arguments& arguments) {
  bool json = false;
  OptionTable table("List what the work can run on.", "ungrain devices");
  table.add("--json", "one JSON object a device", json);
  if (!parse(table, arguments)) return exit_done;
  for (const DeviceInfo& info : devices()) {
    if (json) {
      print("{}\n", json_text({{"device", name(info.device)},
                               {"description", info.description},
                               {"usable", info.usable},
                               {"reason", info.reason}}));
    } else {
      print("{:<11}{}{}\n", name(info.device), info.description,
            info.usable ? "" : fmt::format(" - not usable: {}", info.reason));
    }
  }
  return exit_done;
}

}  // namespace ungrain::cli
