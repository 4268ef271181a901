#include "io/ffmpeg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "io/child_process.h"
#include "io/failure.h"
#include "io/raw_matroska.h"
#include "io/temporary_file.h"
#include "io/y4m.h"
#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;

using Section = std::map<std::string, std::string>;  // key=value lines between [STREAM] and [/STREAM]

// So that a name such as -x.mkv or a:b.mkv is taken for a file.
std::string file_word(const fs::path& file) { return "file:" + file.string(); }

std::int64_t whole_in(const std::string& text, std::int64_t otherwise) {
  std::int64_t value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && stopped == text.data() + text.size() ? value : otherwise;
}

Ratio ratio_in(const std::string& text, char between) {
  const std::size_t at = text.find(between);
  if (at == std::string::npos) return {};
  return {whole_in(text.substr(0, at), 0), whole_in(text.substr(at + 1), 0)};
}

std::vector<std::pair<std::string, Section>> sections_of(const std::string& text) {
  std::vector<std::pair<std::string, Section>> sections;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) {
      if (!line.starts_with("[/")) sections.emplace_back(line, Section{});
      continue;
    }
    const std::size_t equal = line.find('=');
    if (equal != std::string::npos && !sections.empty())
      sections.back().second[line.substr(0, equal)] = line.substr(equal + 1);
  }
  return sections;
}

// The nearest pixel format that Y4M carries: the same chroma and as many bits.
std::string unpacked_format(const std::string& samples) {
  const auto has = [&](std::string_view part) { return samples.find(part) != std::string::npos; };
  if (samples.starts_with("yuvj")) return samples;  // full range: another name would make ffmpeg convert it
  // 10, 12, 14 or 16 bits; of formats with their own names, p010 and the like.
  std::string bits;
  for (const char* each : {"16", "14", "12", "10", "9"}) {
    const std::string ending = each;
    if (samples.ends_with(ending + "le") || samples.ends_with(ending + "be")) bits = ending;
  }
  if (has("48") || has("64")) bits = "16";  // rgb48, rgba64
  if (has("x2rgb") || has("x2bgr")) bits = "10";
  const std::string deep = bits.empty() ? "" : bits + "le";
  if (samples.starts_with("gray") || samples.starts_with("ya") || has("mono")) return "gray" + deep;
  if (has("420") || has("410") || samples.starts_with("nv12") || samples.starts_with("nv21") ||
      samples.starts_with("p0")) {
    return "yuv420p" + deep;
  }
  if (samples == "yuv411p" || samples == "yuvj411p" || samples == "uyyvyy411") return "yuv411p";
  if (has("422") || samples.starts_with("nv16") || samples.starts_with("nv20") || samples.starts_with("p2") ||
      samples.starts_with("y210") || samples.starts_with("y212")) {
    return "yuv422p" + deep;
  }
  return "yuv444p" + deep;
}

std::string known(const Section& stream, const std::string& key) {
  const auto found = stream.find(key);
  if (found == stream.end() || found->second == "unknown" || found->second == "N/A" ||
      found->second == "unspecified" || found->second == "reserved")
    return "";
  return found->second;
}

bool is_rgb(const std::string& samples) {
  return samples.find("rgb") != std::string::npos || samples.find("bgr") != std::string::npos ||
         samples.starts_with("gbr") || samples.starts_with("pal8");
}

bool has_alpha(const std::string& samples) {
  for (const char* part : {"yuva", "ya8", "ya16", "rgba", "bgra", "argb", "abgr", "gbrap", "ayuv"}) {
    if (samples.find(part) != std::string::npos) return true;
  }
  return false;
}

// What of the file does not reach the output; empty: nothing that is known.
std::string note_of(const VideoStream& stream, bool has_data) {
  std::string note;
  const auto add = [&](const std::string& what) { note += (note.empty() ? "" : "; ") + what; };
  if (is_rgb(stream.samples)) add(fmt::format("{} is read as {}", stream.samples, stream.unpacked));
  if (has_alpha(stream.samples)) add("alpha is not kept");
  if (has_data) add("data streams are not kept");
  return note;
}

void check_programs(const fs::path& file) {
  for (const char* program : {"ffmpeg", "ffprobe"}) {
    if (!platform::is_on_path(program))
      fail(file, fmt::format("reading and writing such files needs the program {}, which is not on PATH "
                             "(Debian's package is ffmpeg); Y4M files, frame files and raw frames need none",
                             program));
  }
}

// "[libx264 @ 0x55d0c8] text" without what stands in brackets.
std::string without_address(const std::string& line) {
  const std::size_t end = line.find("] ");
  return line.starts_with('[') && end != std::string::npos ? line.substr(end + 2) : line;
}

// Lines of the frames' timestamps, as ffmpeg writes them while it decodes.
class Timestamps {
 public:
  Timestamps(OwnedDescriptor descriptor, StopWaiting stop)
      : bytes_(std::move(descriptor), "ffmpeg", std::move(stop)), thread_([this] { collect(); }) {}
  ~Timestamps() { thread_.join(); }

  std::optional<std::int64_t> at(int frame) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return ended_ || static_cast<int>(list_.size()) > frame; });
    if (static_cast<int>(list_.size()) <= frame) return std::nullopt;
    return list_[static_cast<std::size_t>(frame)];
  }

 private:
  void collect() {
    try {
      std::string line;
      for (int byte = bytes_.next(); byte != ByteSource::end; byte = bytes_.next()) {
        if (byte != '\n') {
          line += static_cast<char>(byte);
          continue;
        }
        if (!line.starts_with('#')) take(line);
        line.clear();
      }
    } catch (const Error&) {  // the wait was ended: there will be no more
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    came_.notify_all();
  }

  // "0, dts, pts, duration, size, checksum"
  void take(const std::string& line) {
    std::istringstream text(line);
    std::string field;
    for (int i = 0; i < 3; ++i) std::getline(text, field, ',');
    field.erase(0, field.find_first_not_of(' '));
    const std::lock_guard lock(mutex_);
    list_.push_back(whole_in(field, list_.empty() ? 0 : list_.back() + 1));
    came_.notify_all();
  }

  ByteSource bytes_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::int64_t> list_;
  bool ended_ = false;
  std::thread thread_;
};

class DecodedVideo : public VideoReader {
 public:
  DecodedVideo(const VideoStream& stream, const StopWaiting& stop) : stream_(stream) {
    Pipe frames = make_pipe();
    Pipe times = make_pipe();
    const std::string map = fmt::format("0:{}", stream.index);
    const std::string tick = fmt::format("{}:{}", stream.time_base.num, stream.time_base.den);
    process_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{"ffmpeg", "-v", "error", "-nostdin", "-copyts", "-i", file_word(stream.file),
                                 // The timestamps first: a frame's is then there no later than the frame.
                                 "-map", map, "-fps_mode", "passthrough", "-enc_time_base", tick, "-c:v",
                                 "wrapped_avframe", "-flush_packets", "1", "-f", "framecrc", "pipe:3", "-map",
                                 map, "-fps_mode", "passthrough", "-pix_fmt", stream.unpacked, "-strict",
                                 "-1", "-f", "yuv4mpegpipe", "pipe:1"},
        ChildProcess::Streams{.output = frames.writing.number(), .third = times.writing.number()});
    frames.writing.close();
    times.writing.close();
    // Ends with the process, which is ended with this object: it needs no `stop`.
    times_ = std::make_unique<Timestamps>(std::move(times.reading), StopWaiting{});
    try {
      frames_ = open_y4m(std::make_unique<ByteSource>(std::move(frames.reading), stream.file.string(), stop));
    } catch (const Error& error) {
      fail_for(error);
    }
    info_ = frames_->info();
    info_.format = "video";
    info_.frames = stream.frames;
    info_.access = stream.access;
  }
  ~DecodedVideo() override { process_->kill(); }

  const ClipInfo& info() const override { return info_; }

  bool read(Frame& frame) override {
    try {
      if (frames_->read(frame)) return true;
    } catch (const Error& error) {
      fail_for(error);
    }
    if (process_->wait() != 0)
      fail(stream_.file, fmt::format("ffmpeg: {}", without_address(last_line(process_->errors()))));
    return false;
  }

  std::int64_t timestamp(int frame) override {
    const std::optional<std::int64_t> time = times_->at(frame);
    if (!time) fail(stream_.file, fmt::format("ffmpeg told no time of frame {}", frame));
    return *time;
  }

  std::string complaints() const override {
    const std::string errors = process_->errors();
    return errors.find_first_not_of(" \n") == std::string::npos ? "" : without_address(last_line(errors));
  }

 private:
  // What ffmpeg says tells more than that its stream is cut short.
  [[noreturn]] void fail_for(const Error& error) {
    if (error.code() == ErrorCode::io && process_->wait() != 0)
      fail(stream_.file, fmt::format("ffmpeg: {}", without_address(last_line(process_->errors()))));
    throw error;
  }

  VideoStream stream_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<Timestamps> times_;
  std::unique_ptr<FrameReader> frames_;
  ClipInfo info_;
};

bool is_one_of(const fs::path& file, std::initializer_list<std::string_view> extensions) {
  std::string extension = file.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

// H.264 nearly without visible loss; what it cannot hold, lossless in Matroska; else as ffmpeg chooses.
std::vector<std::string> encoder_for(const fs::path& file, const ImageSpec& spec) {
  const bool matroska = is_one_of(file, {".mkv"});
  const bool h264_file =
      matroska || is_one_of(file, {".mp4", ".m4v", ".mov", ".ts", ".mts", ".m2ts", ".flv"});
  const int bits = bits_of(spec);
  const bool fits_h264 = (bits == 8 || bits == 10) && spec.chroma.x <= 2;
  if (h264_file && fits_h264) return {"-c:v:0", "libx264", "-crf:v:0", "16"};
  if (matroska) return {"-c:v:0", "ffv1"};
  return {};
}

// Options for "the video" are meant for the frames, not for pictures that are copied beside them.
std::vector<std::string> for_first_video(std::vector<std::string> options) {
  for (std::string& word : options) {
    if (word == "-vcodec" || word == "-codec:v") word = "-c:v";
    if (word == "-vf") word = "-filter:v";
    if (word.starts_with('-') && word.ends_with(":v")) word += ":0";
  }
  return options;
}

class EncodedVideo : public FrameWriter {
 public:
  EncodedVideo(VideoOutput output, ClipInfo info, StopWaiting stop)
      : output_(std::move(output)), info_(std::move(info)), stop_(std::move(stop)) {
    check_programs(output_.file);
    if (raw_code(info_.spec).empty()) {
      if (is_float(info_.spec.type)) {
        fail(output_.file, fmt::format("frames of {} samples cannot be handed to ffmpeg: name a .raw file",
                                       name(info_.spec.type)));
      }
      fail(output_.file, fmt::format("frames of {} bits{} cannot be handed to ffmpeg: name a .y4m file",
                                     bits_of(info_.spec), info_.spec.alpha ? " with alpha" : ""));
    }
    file_ = std::make_unique<TemporaryFile>(output_.file, info_.access);
  }

  const ImageSpec& spec() const override { return info_.spec; }

  void write(const Frame& frame) override {
    const std::int64_t time = output_.reader != nullptr ? output_.reader->timestamp(frame.number) : written_;
    if (!process_) start(time);
    append_matroska_frame(frame.pixels, nanoseconds(time), block_);
    try {
      bytes_->write(block_.data(), block_.size());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::io) throw;
      bytes_->finish();
      fail_with(process_->wait());
    }
    block_.clear();
    ++written_;
  }

  void finish() override {
    if (!process_) fail(output_.file, "there is no frame to write");
    bytes_->finish();
    if (const int status = process_->wait(); status != 0) fail_with(status);
    file_->commit();
  }

 private:
  // Matroska has no times before 0: all are moved by `earliest_`, and ffmpeg moves them back.
  std::uint64_t nanoseconds(std::int64_t time) const {
    const Ratio tick = tick_of();
    const auto exact = static_cast<long double>(time - earliest_) * static_cast<long double>(tick.num) *
                       1e9L / static_cast<long double>(tick.den);
    return exact <= 0 ? 0 : static_cast<std::uint64_t>(std::llroundl(exact));
  }

  Ratio tick_of() const {
    if (output_.stream != nullptr) return output_.stream->time_base;
    if (info_.rate.known()) return {info_.rate.den, info_.rate.num};
    return {1, 25};
  }

  void start(std::int64_t first_time) {
    earliest_ = std::min<std::int64_t>(first_time, 0);
    Pipe pipe = make_pipe();
    process_ = std::make_unique<ChildProcess>(command(first_time),
                                              ChildProcess::Streams{.input = pipe.reading.number()});
    bytes_ = std::make_unique<DescriptorSink>(std::move(pipe.writing), output_.file.string(), stop_);
    block_ = matroska_header(info_);
  }

  double seconds(std::int64_t time) const {
    const Ratio tick = tick_of();
    return static_cast<double>(time) * static_cast<double>(tick.num) / static_cast<double>(tick.den);
  }

  std::vector<std::string> command(std::int64_t first_time) const {
    const Ratio tick = tick_of();
    std::vector<std::string> words{"ffmpeg", "-v", "error", "-nostdin", "-y"};
    const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
    if (output_.from_start) add({"-copyts"});
    if (earliest_ < 0) add({"-itsoffset", fmt::format("{:.9f}", seconds(earliest_))});
    add({"-f", "matroska", "-i", "pipe:0"});
    if (output_.stream != nullptr) {
      if (!output_.from_start) add({"-ss", fmt::format("{:.6f}", seconds(first_time))});
      add({"-i", file_word(output_.stream->file)});
    }
    add({"-map", "0:v:0"});
    if (output_.stream != nullptr) {
      add({"-map", "1:v?", "-map", fmt::format("-1:{}", output_.stream->index), "-map", "1:a?", "-map",
           "1:s?", "-map", "1:t?", "-map_metadata", "1", "-map_chapters", "1", "-map_metadata:s:v:0",
           fmt::format("1:s:{}", output_.stream->index), "-c", "copy"});
      if (!output_.to_end) add({"-shortest"});
      add_tags(words);
    } else if (info_.range == "FULL" || info_.range == "LIMITED") {
      add({"-color_range:v:0", info_.range == "FULL" ? "pc" : "tv"});
    }
    const std::vector<std::string> encoder =
        output_.encoder.empty() ? encoder_for(output_.file, info_.spec) : for_first_video(output_.encoder);
    if (encoder.empty() && output_.stream != nullptr) add({"-c:v:0", default_encoder()});
    words.insert(words.end(), encoder.begin(), encoder.end());
    add({"-enc_time_base:v:0", fmt::format("{}:{}", tick.num, tick.den), "-fps_mode:v:0", "passthrough",
         "-max_muxing_queue_size", "4096"});
    if (is_one_of(output_.file, {".mp4", ".m4v", ".mov"}) && tick.num == 1)
      add({"-video_track_timescale", fmt::format("{}", tick.den)});
    // Otherwise ffmpeg moves the times of a transport stream by 1.4 s.
    if (output_.from_start && is_one_of(output_.file, {".ts", ".mts", ".m2ts"}))
      add({"-muxdelay", "0", "-muxpreload", "0", "-mpegts_copyts", "1"});
    add({file_word(file_->path())});
    return words;
  }

  void add_tags(std::vector<std::string>& words) const {
    const VideoStream& stream = *output_.stream;
    const std::pair<const char*, const std::string&> tags[] = {
        {"-color_range:v:0", stream.range},
        {"-colorspace:v:0", stream.matrix},
        {"-color_trc:v:0", stream.transfer},
        {"-color_primaries:v:0", stream.primaries},
        {"-chroma_sample_location:v:0", stream.siting}};
    for (const auto& [option, value] : tags) {
      if (value.empty()) continue;
      words.emplace_back(option);
      words.push_back(value);
    }
  }

  // "-c copy" is for the other streams; these are what ffmpeg takes for such files.
  std::string default_encoder() const {
    if (is_one_of(output_.file, {".webm"})) return "libvpx-vp9";
    if (is_one_of(output_.file, {".avi"})) return "mpeg4";
    if (is_one_of(output_.file, {".mpg", ".mpeg", ".vob"})) return "mpeg2video";
    if (is_one_of(output_.file, {".ogv", ".ogg"})) return "libtheora";
    fail(output_.file,
         fmt::format("which encoder for {} bits in such a file? --encoder tells it, for example "
                     "--encoder '-c:v libx265 -crf 18'",
                     bits_of(info_.spec)));
  }

  [[noreturn]] void fail_with(int status) const {
    if (status == 0) fail(output_.file, "ffmpeg stopped before the last frame");
    // What follows the first error is often a consequence of it.
    fail(output_.file, fmt::format("ffmpeg: {}", without_address(first_line(process_->errors()))));
  }

  VideoOutput output_;
  ClipInfo info_;
  StopWaiting stop_;
  std::unique_ptr<TemporaryFile> file_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<DescriptorSink> bytes_;
  std::vector<std::byte> block_;
  std::int64_t earliest_ = 0;
  std::int64_t written_ = 0;
};

std::int64_t frames_in(const Section& stream, const Section& format) {
  if (const std::int64_t counted = whole_in(known(stream, "nb_frames"), -1); counted > 0) return counted;
  const Ratio rate = ratio_in(known(stream, "avg_frame_rate"), '/');
  const std::string duration =
      known(stream, "duration").empty() ? known(format, "duration") : known(stream, "duration");
  double seconds = 0;
  std::from_chars(duration.data(), duration.data() + duration.size(), seconds);
  if (!rate.known() || !(seconds > 0)) return -1;
  return std::llround(seconds * static_cast<double>(rate.num) / static_cast<double>(rate.den));
}

}  // namespace

VideoStream probe_video(const fs::path& file, const StopWaiting& stop) {
  const std::optional<platform::FileStatus> status = platform::status_of(file);
  if (!status) {
    if (errno == ENOENT) fail(file, "there is no such file");
    fail(file, "cannot be opened", errno);
  }
  if (status->kind == platform::FileKind::folder)
    fail(file, "is a folder, not a clip: name its frames, such as 'frames/f%05d.png'");
  check_programs(file);
  const std::string entries =
      "stream=index,codec_type,pix_fmt,avg_frame_rate,time_base,nb_frames,duration,color_range,color_space,"
      "color_transfer,color_primaries,chroma_location,field_order:stream_disposition=attached_pic:format="
      "duration";
  const std::string text = output_of(
      file.string(), {"ffprobe", "-v", "error", "-show_entries", entries, "-of", "default", file_word(file)},
      stop);
  const auto sections = sections_of(text);
  Section format;
  bool has_data = false;
  for (const auto& [name, section] : sections) {
    if (name == "[FORMAT]") format = section;
    has_data = has_data || known(section, "codec_type") == "data";
  }
  for (const auto& [name, section] : sections) {
    if (name != "[STREAM]" || known(section, "codec_type") != "video") continue;
    if (known(section, "DISPOSITION:attached_pic") == "1") continue;
    VideoStream stream;
    stream.file = file;
    stream.index = static_cast<int>(whole_in(known(section, "index"), 0));
    stream.time_base = ratio_in(known(section, "time_base"), '/');
    stream.samples = known(section, "pix_fmt");
    stream.unpacked = unpacked_format(stream.samples);
    stream.range = known(section, "color_range");
    stream.matrix = known(section, "color_space");
    stream.transfer = known(section, "color_transfer");
    stream.primaries = known(section, "color_primaries");
    stream.siting = known(section, "chroma_location");
    stream.frames = frames_in(section, format);
    stream.access = {.mode = status->mode, .group = status->group};
    if (const std::string order = known(section, "field_order"); !order.empty() && order != "progressive") {
      fail(file,
           "the frames are interlaced, and their fields would be mixed up: make them progressive first, for "
           "example "
           "with ffmpeg -vf bwdif");
    }
    if (!stream.time_base.known()) stream.time_base = {1, 1000};
    if (is_rgb(stream.samples)) stream.matrix = stream.range = "";  // those of RGB
    stream.note = note_of(stream, has_data);
    return stream;
  }
  fail(file, "has no video in it");
}

std::unique_ptr<VideoReader> VideoReader::open(const VideoStream& stream, const StopWaiting& stop) {
  return std::make_unique<DecodedVideo>(stream, stop);
}

std::unique_ptr<FrameWriter> create_video(const VideoOutput& output, const ClipInfo& info, StopWaiting stop) {
  return std::make_unique<EncodedVideo>(output, info, std::move(stop));
}

}  // namespace ungrain::io
