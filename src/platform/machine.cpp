#include "platform/machine.h"

#include <algorithm>
#include <fstream>

#if defined(_WIN32)
#include "platform/windows.h"
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <time.h>  // NOLINT: clock_gettime is POSIX, not <ctime>
#else
#include <sys/resource.h>
#include <time.h>  // NOLINT: clock_gettime is POSIX, not <ctime>
#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#endif

namespace ungrain::platform {

#if defined(_WIN32)

std::size_t available_memory() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (GlobalMemoryStatusEx(&status) == 0) return unknown_memory;
  // Allocations are charged to the page file at once, whether they are used or not.
  return static_cast<std::size_t>(std::min(status.ullAvailPhys, status.ullAvailPageFile));
}

std::string processor_name() {
  wchar_t text[256] = {};
  DWORD bytes = sizeof text - sizeof(wchar_t);
  const LSTATUS status =
      RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                   L"ProcessorNameString", RRF_RT_REG_SZ, nullptr, text, &bytes);
  return status == ERROR_SUCCESS ? narrow(text) : "";
}

bool arm_has_byte_dots() {
#if defined(__aarch64__)
  constexpr DWORD dot_products = 43;  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, which older headers lack
  return IsProcessorFeaturePresent(dot_products) != 0;
#else
  return false;
#endif
}

std::int64_t thread_time_ns() {
  FILETIME created{};
  FILETIME ended{};
  FILETIME kernel{};
  FILETIME user{};
  if (GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user) == 0) return 0;
  const auto ticks = [](const FILETIME& time) {  // of 100 ns
    return static_cast<std::int64_t>(time.dwHighDateTime) << 32U |
           static_cast<std::int64_t>(time.dwLowDateTime);
  };
  return (ticks(kernel) + ticks(user)) * 100;
}

#else

namespace {

std::size_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unknown_memory;
  return static_cast<std::size_t>(limit.rlim_cur);
}

#if defined(__APPLE__)

// Free and quickly freed: pages that no process has used for a while, or that can be read again from files.
std::size_t machine_free() {
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  vm_size_t page = 0;
  const mach_port_t host = mach_host_self();
  const bool known = host_page_size(host, &page) == KERN_SUCCESS &&
                     host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages),
                                       &count) == KERN_SUCCESS;
  mach_port_deallocate(mach_task_self(), host);
  if (!known) return unknown_memory;
  return (static_cast<std::size_t>(pages.free_count) + pages.inactive_count + pages.purgeable_count) * page;
}

#else

constexpr std::size_t kib = 1024;

std::size_t number_in(const char* path) {
  std::ifstream file(path);
  std::size_t value = unknown_memory;  // "max" leaves it so
  return file >> value ? value : unknown_memory;
}

// What is left of a container's memory limit.
std::size_t group_free() {
  const std::size_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::size_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit == unknown_memory || used == unknown_memory) return unknown_memory;
  return limit > used ? limit - used : 0;
}

std::size_t machine_free() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::size_t value = 0;
  std::string rest;
  while (meminfo >> key >> value && std::getline(meminfo, rest)) {
    if (key == "MemAvailable:") return std::min(value * kib, group_free());
  }
  return group_free();
}

#endif

}  // namespace

std::size_t available_memory() { return std::min(machine_free(), address_space_limit()); }

std::string processor_name() {
#if defined(__APPLE__)
  char text[256] = {};
  std::size_t size = sizeof text - 1;
  return sysctlbyname("machdep.cpu.brand_string", text, &size, nullptr, 0) == 0 ? text : "";
#else
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "";
#endif
}

bool arm_has_byte_dots() {
#if defined(__linux__) && defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__APPLE__) && defined(__aarch64__)
  int there = 0;
  std::size_t size = sizeof there;
  return sysctlbyname("hw.optional.arm.FEAT_DotProd", &there, &size, nullptr, 0) == 0 && there != 0;
#elif defined(__ARM_FEATURE_DOTPROD)
  return true;
#else
  return false;
#endif
}

std::int64_t thread_time_ns() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

#endif

}  // namespace ungrain::platform
