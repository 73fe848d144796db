// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits suggest`: what packbits would do for the datasets of a file.
//
#include "convert/command.hpp"
#include "convert/command_line.hpp"
#include "convert/doctor_child.hpp"
#include "convert/names.hpp"
#include "convert/suggest.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>
#include <string>

namespace zarrbits::cli {
namespace {

using nlohmann::ordered_json;

const char footer[] =
    "Reads every value of the integer, boolean, enumeration and float datasets, finds the smallest range of bits (first_bit to last_bit) from\n"
    "which all of them come back, and says what the filter packbits would store. Nothing is written: the h5repack lines are for you to type.\n"
    "Sizes are those of the chunks, without HDF5's index of them.\n\n"
    "Examples:\n"
    "  zarrbits suggest camera.h5\n"
    "  zarrbits suggest --json camera.h5 | python3 -m json.tool\n\n"
    "Exit status: 0 done, 1 the file cannot be read, 2 wrong usage.";

std::string printable(const std::string& text) {
  const std::string q = quote(text);
  return q.substr(1, q.size() - 2);
}

std::string percent(std::uint64_t before, std::uint64_t after) {
  return before == 0 ? "0 %" : std::to_string(static_cast<int>(100.0 - 100.0 * static_cast<double>(after) / static_cast<double>(before) + 0.5)) + " %";
}

std::string bits_in_words(const suggest::suggestion& s) {
  const unsigned bits = s.last_bit - s.first_bit + 1;
  return bits == 1 ? "1 bit of " + std::to_string(s.width) + " (bit " + std::to_string(s.first_bit) + ")"
                   : std::to_string(bits) + " bits of " + std::to_string(s.width) + " (" + std::to_string(s.first_bit) + " to " + std::to_string(s.last_bit) + ")";
}

void print_text(const suggest::result& r, const std::string& path, bool all) {
  std::uint64_t useful = 0, before = 0, after = 0;
  std::string options;
  for (const suggest::suggestion& s : r.datasets) {
    const bool of_use = s.obstacle.empty();
    if (!of_use && !all) continue;
    std::cout << printable(s.path) << '\n'
              << "  " << s.type << ", " << bits_in_words(s) << " hold every value: " << conversion::human_bytes(s.before) << " -> " << conversion::human_bytes(s.after);
    if (!of_use) {
      std::cout << "; " << printable(s.obstacle) << '\n';
      continue;
    }
    std::cout << ", " << percent(s.before, s.after) << " saved\n  h5repack " << s.h5repack << ' ' << suggest::shell_quoted(path) << " packed.h5\n";
    ++useful;
    before += s.before;
    after += s.after;
    options += s.h5repack + " ";
  }
  if (all) {
    for (const suggest::omission& l : r.left_out) std::cout << printable(l.path) << "\n  left out: " << printable(l.reason) << '\n';
  }
  if (useful > 1) {
    std::cout << "\nAll at once: " << conversion::human_bytes(before) << " -> " << conversion::human_bytes(after) << ", " << percent(before, after) << " saved\n  h5repack "
              << options << suggest::shell_quoted(path) << " packed.h5\n";
  }
  const std::uint64_t rest = r.datasets.size() - useful;
  if (useful > 0) std::cout << '\n';
  std::cout << conversion::counted(useful, "dataset") << " would gain, " << rest << " would not, " << r.left_out.size() << " left out"
            << (all || rest + r.left_out.size() == 0 ? "" : " (--all tells why)") << '\n';
}

ordered_json to_json(const suggest::result& r, const std::string& path) {
  ordered_json j = {{"version", 1}, {"file", path}, {"datasets", ordered_json::array()}, {"left_out", ordered_json::array()}};
  for (const suggest::suggestion& s : r.datasets) {
    j["datasets"].push_back({{"path", s.path}, {"type", s.type}, {"elements", s.elements}, {"width", s.width}, {"first_bit", s.first_bit},
                             {"last_bit", s.last_bit}, {"bits", s.last_bit - s.first_bit + 1}, {"chunk", s.chunk}, {"stored_bytes", s.before},
                             {"packed_bytes", s.after}, {"worthwhile", s.obstacle.empty()}, {"obstacle", s.obstacle}, {"h5repack", s.h5repack}});
  }
  for (const suggest::omission& l : r.left_out) j["left_out"].push_back({{"path", l.path}, {"reason", l.reason}});
  return j;
}

}  // namespace

int suggest_main(int argc, char** argv) {
  CLI::App app("Says which bits of a file's datasets packbits need not store.", "zarrbits suggest");
  app.footer(footer);
  std::string path;
  bool as_json = false, all = false;
  app.add_option("FILE", path, "The HDF5 file")->required()->type_name("in.h5");
  app.add_flag("--json", as_json, "Print one JSON object instead of text");
  app.add_flag("--all", all, "Tell the datasets that would not gain as well, and why");
  if (const auto over = parse_arguments(app, argc, argv)) return *over;

  return in_child(path, [&](const auto& at) {
    suggest::result r;
    {
      std::optional<progress_line> line;
      r = suggest::examine(path, [&](const suggest::progress& p) {
        at(p.path);
        if (!line) line.emplace(path, p.of);
        line->advance(p.bytes, p.path);
      });
    }
    if (as_json) std::cout << to_json(r, path).dump(1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
    else print_text(r, path, all);
    std::cout.flush();
    return static_cast<int>(exit_success);
  });
}

}  // namespace zarrbits::cli
