#include "progress.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "output.h"
#include "platform/console.h"

namespace ungrain::cli {
namespace {

int terminal_width() {
  constexpr int usual = 80;
  const int width = platform::terminal_width();
  return width > 0 ? width : usual;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<long>(std::min(seconds, 359999.0));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// The first `bytes` bytes, or a few less, so that no UTF-8 character is split.
std::string cut(const std::string& text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

// Draws a line over the one before: head, bar, tail. False: the terminal is too narrow.
bool put_bar(std::string head, double share, const std::string& tail) {
  const int width = terminal_width() - 1;
  constexpr int shortest_bar = 12;
  const int room = width - static_cast<int>(tail.size()) - shortest_bar;
  if (static_cast<int>(head.size()) > room) head = cut(head, static_cast<std::size_t>(std::max(0, room)));
  const int bar = width - static_cast<int>(head.size() + tail.size()) - 2;
  if (bar < 1) return false;
  const int filled = static_cast<int>(share * bar);
  put_aside(fmt::format("\r{}[{}{}]{}\033[K", head, std::string(static_cast<std::size_t>(filled), '#'),
                        std::string(static_cast<std::size_t>(bar - filled), '.'), tail));
  return true;
}

}  // namespace

ProgressBar::ProgressBar(bool wanted, int files, double work, int jobs)
    : shown_(wanted && platform::is_terminal(platform::standard_error)),
      files_(files),
      work_(work),
      jobs_(jobs) {}

ProgressBar::~ProgressBar() { clear(); }

ProgressBar::File::File(ProgressBar& bar, const std::string& name, double work) : bar_(bar) {
  const std::lock_guard lock(bar_.mutex_);
  ++bar_.started_;
  bar_.running_.push_back({name, work, Clock::now()});
  file_ = std::prev(bar_.running_.end());
  bar_.draw(false);
}

ProgressBar::File::~File() {
  const std::lock_guard lock(bar_.mutex_);
  bar_.work_done_ += file_->work;
  if (done_) {
    bar_.work_measured_ += file_->work;
    bar_.seconds_measured_ += file_->seconds_until(Clock::now());
  }
  bar_.running_.erase(file_);
}

void ProgressBar::File::set_pixels(double pixels) {
  const std::lock_guard lock(bar_.mutex_);
  file_->pixels = pixels;
}

void ProgressBar::File::update(double fraction) {
  const std::lock_guard lock(bar_.mutex_);
  file_->fraction = fraction;
  bar_.draw(fraction >= 1);
}

void ProgressBar::aside(const std::function<void()>& print) {
  const std::lock_guard lock(mutex_);
  clear();
  print();
}

void ProgressBar::draw(bool at_once) {
  if (!shown_ || running_.empty()) return;
  const Clock::time_point now = Clock::now();
  constexpr std::chrono::milliseconds pause{100};
  if (drawn_ && now - last_ < pause && !at_once) return;
  last_ = now;
  double rate = 0;
  double done = work_done_;
  double measured = work_measured_;
  double spent = seconds_measured_;
  for (const RunningFile& file : running_) {
    const double seconds = file.seconds_until(now);
    if (seconds > 0) rate += file.fraction * file.pixels / seconds / 1e6;
    done += file.fraction * file.work;
    measured += file.fraction * file.work;
    spent += seconds;
  }
  const double left = measured > 0 ? (work_ - done) * spent / measured / jobs_ : 0;
  const double share = work_ > 0 ? std::clamp(done / work_, 0.0, 1.0) : running_.front().fraction;

  const std::string tail = fmt::format(" {:3.0f}%  {:.1f} Mpixel/s  {} left", 100 * share, rate,
                                       measured > 0 ? time_text(left) : "-:--");
  std::string head = fmt::format("{}/{} {} ", started_, files_, running_.front().name);
  if (!put_bar(std::move(head), share, tail)) return;
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  put_aside("\r\033[K");
  drawn_ = false;
}

FrameBar::FrameBar(bool wanted, std::string name, std::int64_t frames)
    : shown_(wanted && platform::is_terminal(platform::standard_error)),
      name_(std::move(name)),
      frames_(frames) {}

FrameBar::~FrameBar() { clear(); }

void FrameBar::update(std::int64_t done, const std::string& noise) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  constexpr std::chrono::milliseconds pause{100};
  if (!shown_ || (drawn_ && now - last_ < pause)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string sigma = noise.empty() ? "" : "  sigma " + noise;
  if (frames_ <= 0) {
    put_aside(fmt::format("\r{} frames  {:.1f} frames/s{}\033[K", done, rate, sigma));
    drawn_ = true;
    return;
  }
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(frames_), 0.0, 1.0);
  const double left = rate > 0 ? static_cast<double>(std::max<std::int64_t>(0, frames_ - done)) / rate : 0;
  const std::string tail = fmt::format(" {:3.0f}%  {}/{}  {:.1f} frames/s  {} left{}", 100 * share, done,
                                       frames_, rate, rate > 0 ? time_text(left) : "-:--", sigma);
  drawn_ = put_bar(name_ + " ", share, tail) || drawn_;
}

void FrameBar::clear() {
  const std::lock_guard lock(mutex_);
  if (!drawn_) return;
  put_aside("\r\033[K");
  drawn_ = false;
}

}  // namespace ungrain::cli
