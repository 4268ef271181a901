#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "output.h"

namespace ungrain::cli {
namespace {

int terminal_width() {
  winsize size{};
  constexpr int usual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<long>(std::min(seconds, 359999.0));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// The first `bytes` bytes, or a few less: not half of a UTF-8 character.
std::string cut(const std::string& text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

ProgressBar::ProgressBar(bool wanted, int files, double work)
    : shown_(wanted && isatty(STDERR_FILENO) == 1), files_(files), work_(work) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::start_file(const std::string& name, double work) {
  ++file_;
  name_ = name;
  file_work_ = work;
  file_pixels_ = 0;
  file_start_ = Clock::now();
  update(0);
}

void ProgressBar::set_pixels(double pixels) { file_pixels_ = pixels; }

void ProgressBar::update(double fraction) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  constexpr std::chrono::milliseconds pause{100};
  if (drawn_ && now - last_ < pause && fraction < 1) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - file_start_).count();
  const double rate = seconds > 0 ? fraction * file_pixels_ / seconds / 1e6 : 0;
  const double done = work_done_ + fraction * file_work_;
  const double measured = work_measured_ + fraction * file_work_;
  const double left = measured > 0 ? (work_ - done) * (seconds_measured_ + seconds) / measured : 0;
  const double share = work_ > 0 ? std::clamp(done / work_, 0.0, 1.0) : fraction;

  const std::string tail = fmt::format(" {:3.0f}%  {:.1f} Mpixel/s  {} left", 100 * share, rate,
                                       measured > 0 ? time_text(left) : "-:--");
  std::string head = fmt::format("{}/{} {} ", file_, files_, name_);
  const int width = terminal_width() - 1;
  constexpr int shortest_bar = 12;
  const int room = width - static_cast<int>(tail.size()) - shortest_bar;
  if (static_cast<int>(head.size()) > room) head = cut(head, static_cast<std::size_t>(std::max(0, room)));
  const int bar = width - static_cast<int>(head.size() + tail.size()) - 2;
  if (bar < 1) return;
  const int filled = static_cast<int>(share * bar);
  put_aside(fmt::format("\r{}[{}{}]{}\033[K", head, std::string(static_cast<std::size_t>(filled), '#'),
                        std::string(static_cast<std::size_t>(bar - filled), '.'), tail));
  drawn_ = true;
}

void ProgressBar::end_file(bool counts) {
  work_done_ += file_work_;
  if (!counts) return;
  work_measured_ += file_work_;
  seconds_measured_ += std::chrono::duration<double>(Clock::now() - file_start_).count();
}

void ProgressBar::clear() {
  if (!drawn_) return;
  put_aside("\r\033[K");
  drawn_ = false;
}

}  // namespace ungrain::cli
