// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits encode` and `zarrbits decode`: the codecs as Unix filters, through the Boost.Iostreams filters.
//
#include "command/command.hpp"
#include "command/command_line.hpp"

#include <zarrbits/codec.hpp>
#include <zarrbits/iostreams.hpp>

#include <CLI/CLI.hpp>
#include <boost/iostreams/compose.hpp>
#include <boost/iostreams/concepts.hpp>
#include <boost/iostreams/copy.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace zarrbits::command {
namespace {

// Large enough that system calls cost little, small enough to stay in the second-level cache.
constexpr std::streamsize buffer_size = 64 * 1024;

// Boost's own descriptor devices neither wait for non-blocking pipes nor say which file an error belongs to.
class descriptor_source : public boost::iostreams::source {
 public:
  descriptor_source(const input_file& file, std::uint64_t& total) : file_(&file), total_(&total) {}
  std::streamsize read(char* data, std::streamsize size) {
    const std::size_t n = read_some(file_->descriptor(), data, static_cast<std::size_t>(size), file_->name());
    *total_ += n;
    return n == 0 ? -1 : static_cast<std::streamsize>(n);
  }

 private:
  const input_file* file_;
  std::uint64_t* total_;
};

class descriptor_sink : public boost::iostreams::sink {
 public:
  descriptor_sink(const output_file& file, std::uint64_t& total) : file_(&file), total_(&total) {}
  std::streamsize write(const char* data, std::streamsize size) {
    write_all(file_->descriptor(), data, static_cast<std::size_t>(size), file_->name());
    *total_ += static_cast<std::uint64_t>(size);
    return size;
  }

 private:
  const output_file* file_;
  std::uint64_t* total_;
};

struct options {
  std::string data_type;
  std::string codec;
  std::string elements;
  std::string output = "-";
  std::string input = "-";
  codec_policy policy;
};

void add_options(CLI::App& app, options& o) {
  app.add_option("--data-type", o.data_type, "Data type of the array: a Zarr name (bool, uint16, complex64, r24) or its JSON")
      ->required()
      ->type_name("T");
  app.add_option("--codec", o.codec, "Codec: its JSON as in zarr.json, or a bare name: bytes, packbits, numcodecs.packbits")
      ->required()
      ->type_name("JSON");
  app.add_option(
         "--elements", o.elements,
         "Number of elements; any other number is an error. Default: computed from the size of a regular file, where possible")
      ->type_name("N");
  app.add_flag(
      "--truncate", o.policy.truncate,
      "Encode: drop bits that the codec does not keep, and upper bits of sub-byte types, instead of failing (never of bool)");
  app.add_flag("--nonzero-is-true", o.policy.nonzero_is_true,
               "A bool that is neither 0 nor 1 counts as true, instead of failing");
  app.add_flag("--strict-padding", o.policy.strict_padding, "Decode: refuse padding bits that are not 0");
  app.add_flag("--assume-little-endian", o.policy.assume_little_endian,
               "The codec bytes without \"endian\" means little where the data type needs one, instead of failing");
  app.add_option("-o,--output", o.output,
                 "Output file; it appears when it is complete, and not after an error. Default: standard output")
      ->type_name("OUT");
  app.add_option("IN", o.input, "Input file. Default, and -: standard input");
}

// The number of elements in the input, if its size implies it. Refuses impossible sizes before anything is written.
std::optional<std::uint64_t> elements_to_encode(const codec& c, const input_file& in) {
  const auto size = in.remaining();
  if (!size || c.element_size() == 0) return {};
  if (*size % c.element_size() != 0) {
    throw command_error("encode: " + in.name() + " has " + std::to_string(*size) + " bytes, which is not a whole number of " +
                        c.type().name() + " elements of " + std::to_string(c.element_size()) + " bytes; check --data-type");
  }
  return *size / c.element_size();
}

// Without a count byte, `size` bytes may encode `max_count` elements or a few fewer; the missing ones would be padding.
struct possible_counts {
  std::uint64_t max_count = 0;
  unsigned max_padding = 0;  // how many counts below `max_count` are possible too
  bool exact = false;        // `size` bytes are a whole chunk
};

possible_counts counts_of(const codec& c, std::uint64_t size) {
  const std::uint64_t bits = c.element_bits();
  if (bits == 0 || bits > UINT64_MAX / 8 || size > UINT64_MAX / 16) return {};
  possible_counts r;
  r.max_count = size / bits * 8 + size % bits * 8 / bits;
  r.exact = c.encoded_size(r.max_count) == size;
  while (r.exact && r.max_padding < r.max_count && c.encoded_size(r.max_count - r.max_padding - 1) == size) ++r.max_padding;
  return r;
}

bool has_count_byte(const codec& c) { return c.encoded_size(0) != 0; }

std::optional<std::uint64_t> elements_to_decode(const codec& c, const input_file& in) {
  const auto size = in.remaining();
  if (!size || c.element_bits() == 0 || has_count_byte(c)) return {};
  const possible_counts n = counts_of(c, *size);
  if (!n.exact) {
    throw command_error("decode: " + in.name() + " has " + std::to_string(*size) + " bytes, which is not a whole number of " +
                        c.type().name() + " elements of " + std::to_string(c.element_bits()) +
                        " bits; check --data-type and --codec");
  }
  if (n.max_padding > 0) return {};
  return n.max_count;
}

// The core's sentences speak of policies; here they are options.
const char* option_for(const std::error_code& code) {
  if (code == errc::value_does_not_fit) return " (--truncate)";
  if (code == errc::invalid_bool) return " (--nonzero-is-true)";
  return "";
}

template <class Filter>
void run(const Filter& filter, const input_file& in, const output_file& out, std::uint64_t& bytes_in,
         std::uint64_t& bytes_out) try {
  // compose() and not a filtering stream: its errors arrive here as they were thrown
  boost::iostreams::copy(descriptor_source(in, bytes_in), boost::iostreams::compose(filter, descriptor_sink(out, bytes_out)),
                         buffer_size);
} catch (const iostreams::codec_error& e) {
  throw command_error(std::string(e.what()) + option_for(e.failure().code));
}

int encode_or_decode(bool encode, CLI::App& app, int argc, char** argv) {
  options o;
  add_options(app, o);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;

  std::optional<std::uint64_t> elements;
  if (!o.elements.empty()) elements = parse_count("--elements", o.elements);
  const codec c = parse_codec(o.codec, data_type(o.data_type), o.policy);
  if (elements) {  // sizes that do not fit in 64 bits are a matter of the command line
    c.decoded_size(*elements);
    c.encoded_size(*elements);
  }

  const input_file in(o.input);
  const bool has_count = elements.has_value();
  if (!has_count) elements = encode ? elements_to_encode(c, in) : elements_to_decode(c, in);
  if (encode && !elements && c.needs_element_count()) {
    throw usage_error("encode: " + c.name() +
                      " with padding_encoding \"first_byte\" needs the number of elements before the data, and " + in.name() +
                      " does not give it; pass --elements N, or use \"last_byte\"");
  }

  output_file out(o.output);
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  if (encode) {
    run(iostreams::encoder(c, elements, buffer_size), in, out, bytes_in, bytes_out);
  } else {
    run(iostreams::decoder(c, elements, buffer_size), in, out, bytes_in, bytes_out);
  }
  out.commit();

  if (!encode && !elements && c.element_bits() != 0 && !has_count_byte(c)) {
    if (const unsigned max_padding = counts_of(c, bytes_in).max_padding) {
      print_error("note: the last " + std::to_string(max_padding) + (max_padding == 1 ? " element" : " elements") +
                  " may be padding, because the data does not say how many there are; pass --elements N");
    }
  }
  return exit_success;
}

const char encode_examples[] =
    "The array side is C order, in this machine's byte order; sub-byte types take a byte each.\n\n"
    "Examples:\n"
    "  zarrbits encode --data-type bool --codec packbits -o mask.bits mask.raw\n"
    "  zarrbits encode --data-type uint16 --codec '{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11}}' < frames.raw "
    "> frames.bits\n"
    "  camera | zarrbits encode --data-type uint16 --elements 307200 --codec \\\n"
    "    '{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11, \"padding_encoding\": \"first_byte\"}}' | gzip > "
    "frame.gz\n\n"
    "Exit status: 0 success, 1 wrong data or a file that cannot be read or written, 2 wrong usage or configuration.";

const char decode_examples[] =
    "The array side is C order, in this machine's byte order; sub-byte types take a byte each.\n\n"
    "Examples:\n"
    "  zarrbits decode --data-type bool --codec packbits --elements 1000 -o mask.raw mask.bits\n"
    "  zarrbits decode --data-type float32 --codec '{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}' "
    "store/a/c/0/0 | od -f\n"
    "  zarrbits decode --data-type '{\"name\": \"struct\", \"configuration\": {\"fields\": [{\"name\": \"t\", \"data_type\": "
    "\"int64\"},\n"
    "    {\"name\": \"v\", \"data_type\": \"float32\"}]}}' --codec '{\"name\": \"bytes\", \"configuration\": {\"endian\": "
    "\"little\"}}' < chunk\n\n"
    "Without a count byte and --elements, up to 7 elements at the end may be padding; a note says so.\n\n"
    "Exit status: 0 success, 1 wrong data or a file that cannot be read or written, 2 wrong usage or configuration.";

}  // namespace

int encode_main(int argc, char** argv) {
  CLI::App app("Encodes an array with a Zarr codec: reads its elements, writes the bytes of the chunk.", "zarrbits encode");
  app.footer(encode_examples);
  return encode_or_decode(true, app, argc, argv);
}

int decode_main(int argc, char** argv) {
  CLI::App app("Decodes a chunk with a Zarr codec: reads its bytes, writes the elements of the array.", "zarrbits decode");
  app.footer(decode_examples);
  return encode_or_decode(false, app, argc, argv);
}

}  // namespace zarrbits::command
