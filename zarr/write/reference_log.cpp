// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/reference_log.hpp"

#include "compressors/crc32c.hpp"
#include "io/remote_url.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <sys/stat.h>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr std::string_view log_begins = "zarrbits references 1\n";
// The first byte of each record. Numbers follow as 8 bytes, the lowest first; texts, and bytes, with their size in front.
// A unit ends with the crc32c of all its records.
enum class record : char { file = 'f', range = 'r', bytes = 'b', end = 'e' };

void add(std::string& out, std::uint64_t number) {
  for (int bit = 0; bit < 64; bit += 8) out += static_cast<char>(number >> bit & 0xFF);
}

void add(std::string& out, std::string_view text) {
  add(out, std::uint64_t{text.size()});
  out += text;
}

// Ends the reading of a log.
struct no_record {};

class log_reader {
 public:
  explicit log_reader(int fd) : fd_(fd), end_(io::state_of(fd).size) {}

  bool at_end() const { return position() == end_; }
  std::uint64_t position() const { return next_ - (buffer_.size() - used_); }
  std::string text(std::uint64_t size) {
    if (size > end_ - position()) throw no_record();
    std::string out;
    while (out.size() < size) {
      if (used_ == buffer_.size()) fill();
      const std::size_t n = std::min<std::size_t>(buffer_.size() - used_, static_cast<std::size_t>(size) - out.size());
      out.append(buffer_, used_, n);
      use(n);
    }
    return out;
  }
  std::uint64_t number() {
    std::uint64_t n = 0;
    int bit = 0;
    for (const char byte : text(8)) {
      n |= std::uint64_t{static_cast<unsigned char>(byte)} << bit;
      bit += 8;
    }
    return n;
  }
  std::string sized_text(std::uint64_t max_size) {
    const std::uint64_t size = number();
    if (size > max_size) throw no_record();
    return text(size);
  }
  void skip(std::uint64_t size) {
    if (size > end_ - position()) throw no_record();
    while (size > 0) {
      if (used_ == buffer_.size()) fill();
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size() - used_, size));
      use(n);
      size -= n;
    }
  }
  // The sum of all that was read since the last call.
  std::uint32_t take_sum() { return std::exchange(sum_, 0); }

 private:
  void use(std::size_t n) {
    sum_ = compressors::crc32c(std::as_bytes(std::span(buffer_).subspan(used_, n)), sum_);
    used_ += n;
  }
  void fill() {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(end_ - next_, 1U << 16)));
    used_ = 0;
    if (buffer_.empty()) throw no_record();
    try {
      io::read_range(fd_, next_, std::as_writable_bytes(std::span(buffer_)));
    } catch (const io::read_error&) {
      throw no_record();
    }
    next_ += buffer_.size();
  }

  int fd_;
  std::uint64_t end_, next_ = 0;  // of the file; where the next fill() begins
  std::string buffer_;
  std::size_t used_ = 0;
  std::uint32_t sum_ = 0;
};

constexpr std::uint64_t max_text_bytes = 1U << 16;

// A key of a chunk.
std::string chunk_key(log_reader& in) {
  std::string key = in.sized_text(max_text_bytes);
  try {
    check_key(key);
  } catch (const zarrbits::error&) {
    throw no_record();
  }
  if (text::is_node_key(key) || in_unfinished_folder(key)) throw no_record();
  return key;
}

}  // namespace

void reference_log_writer::range(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                                 std::uint64_t size) {
  const auto [entry, is_new] = files_.emplace(url, files_.size());
  if (is_new) {
    text_ += static_cast<char>(record::file);
    add(text_, url);
    for (const std::uint64_t n :
         {state.size, static_cast<std::uint64_t>(state.seconds), static_cast<std::uint64_t>(state.nanoseconds)})
      add(text_, n);
    add(text_, state.etag);
  }
  text_ += static_cast<char>(record::range);
  add(text_, key);
  for (const std::uint64_t n : {entry->second, offset, size}) add(text_, n);
}

void reference_log_writer::bytes(std::string_view key, std::span<const std::byte> content) {
  text_ += static_cast<char>(record::bytes);
  add(text_, key);
  add(text_, std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
}

void reference_log_writer::end(const unit_key& unit) {
  text_ += static_cast<char>(record::end);
  add(text_, unit.first);
  add(text_, unit.second);
  add_to_sum();
  add(text_, std::uint64_t{std::exchange(sum_, 0)});
  summed_ = text_.size();
}

void reference_log_writer::add_to_sum() {
  sum_ = compressors::crc32c(std::as_bytes(std::span(text_).subspan(summed_)), sum_);
  summed_ = text_.size();
}

std::string reference_log_writer::take() {
  add_to_sum();
  summed_ = 0;
  std::string text = std::exchange(text_, {});
  if (!begun_ && !text.empty()) text.insert(0, log_begins);
  begun_ = begun_ || !text.empty();
  return text;
}

reference_log::reference_log(io::file_descriptor fd) : fd_(std::move(fd)) {
  log_reader in(fd_.get());
  std::vector<call> calls;
  try {
    if (in.text(log_begins.size()) != log_begins) return;
    in.take_sum();
    while (!in.at_end()) {
      switch (static_cast<record>(in.text(1)[0])) {
        case record::file: {
          io::referenced_file f{in.sized_text(max_text_bytes)};
          f.state.emplace().regular = true;
          f.state->size = in.number();
          f.state->seconds = static_cast<std::int64_t>(in.number());
          f.state->nanoseconds = static_cast<std::int64_t>(in.number());
          f.state->etag = in.sized_text(max_text_bytes);
          if (!f.url.starts_with(io::file_url) && !io::is_remote(f.url)) throw no_record();
          files_.push_back(std::move(f));
          break;
        }
        case record::range: {
          call c{chunk_key(in), static_cast<std::size_t>(in.number()), in.number(), in.number()};
          if (*c.file >= files_.size()) throw no_record();
          const std::uint64_t file_size = files_[*c.file].state->size;
          if (c.offset > file_size || c.size > file_size - c.offset) throw no_record();
          calls.push_back(std::move(c));
          break;
        }
        case record::bytes: {
          std::string key = chunk_key(in);
          const std::uint64_t size = in.number();
          calls.push_back({std::move(key), {}, in.position(), size});
          in.skip(size);
          break;
        }
        case record::end: {
          const std::uint64_t dataset = in.number(), number = in.number();
          const std::uint32_t sum = in.take_sum();
          if (in.number() != sum) throw no_record();
          in.take_sum();
          units_.try_emplace({dataset, number}, std::move(calls));
          calls.clear();
          break;
        }
        default: return;
      }
    }
  } catch (const no_record&) {  // the records before it count
  }
}

std::vector<std::byte> reference_log::bytes(const call& of) const {
  std::vector<std::byte> out(static_cast<std::size_t>(of.size));
  io::read_range(fd_.get(), of.offset, out);
  return out;
}

}  // namespace zarrbits::zarr
