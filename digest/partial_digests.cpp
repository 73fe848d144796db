// SPDX-License-Identifier: BSL-1.0
#include "digest/partial_digests.hpp"

#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace zarrbits::digesting {

namespace {

using text::json;

constexpr std::uint64_t max_report_bytes = std::uint64_t{1} << 30;

std::vector<std::string> digits_of(const lanes& sums) { return {hexadecimal(sums[0]), hexadecimal(sums[1])}; }

[[noreturn]] void refuse(const std::string& file, const std::string& reason) {
  throw error(errc::invalid_option, "cannot add \"" + file + "\": " + reason, {file});
}

json read_report(const std::string& file) {
  std::error_code e;
  if (std::filesystem::file_size(file, e) > max_report_bytes && !e) refuse(file, "it is too large for a report");
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(errc::not_found, "cannot open \"" + file + "\"", {file});
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  json document = text::parse_untrusted_json(content);
  if (!document.is_object()) refuse(file, "it is not the report of a partition; use those of runs with `partition`");
  return document;
}

// What the reports of all shares have in common.
struct share_source {
  std::string source;
  unsigned count = 0;
  std::vector<std::string> include, exclude;
  bool operator==(const share_source&) const = default;
};

struct array_parts {
  array_digest array;
  lanes sums{0, 0}, fill{0, 0};
};

class report_sum {
 public:
  void add(const std::string& file) {
    const json report = read_report(file);
    try {
      add(file, report);
    } catch (const json::exception&) {
      refuse(file, "it is not the report of a partition; use those of runs with `partition`");
    }
  }

  digest_report result() {
    if (const unsigned count = common_->count; files_.size() != count) {
      unsigned index = 0;
      while (files_.contains(index)) ++index;
      throw error(errc::incomplete, "the reports are of " + std::to_string(files_.size()) + " of " +
                                        text::pluralize(count, "partition") + ": that of partition " + std::to_string(index) +
                                        "/" + std::to_string(count) + " is missing; run it, and add all of them");
    }
    // what one run could not read has no digest, nor the arrays that the others made of it
    for (const auto& [path, reason] : unreadable_) {
      std::erase_if(arrays_, [&, &unreadable = path](const auto& entry) {
        return entry.first == unreadable || entry.first.starts_with(text::join_path(unreadable, ""));
      });
    }
    digest_report report;
    report.source = common_->source;
    for (auto& [path, parts] : arrays_) {
      array_digest& a = report.arrays.emplace_back(std::move(parts.array));
      a.digest = digest_of(a.data_type, a.shape,
                           {digesting::add(parts.sums[0], parts.fill[0]), digesting::add(parts.sums[1], parts.fill[1])});
    }
    for (const auto& [path, reason] : unreadable_) report.arrays.push_back(skipped_array(path, reason));
    return report;
  }

 private:
  void add(const std::string& file, const json& report) {
    const json& partition = report.at("partition");
    const auto index = partition.at("index").get<std::uint64_t>(), count = partition.at("count").get<std::uint64_t>();
    if (report.at("version") != 1 || count == 0 || count > 1'000'000 || index >= count)
      refuse(file, "it is not the report of a partition; use those of runs with `partition`");
    share_source common{report.at("source").get<std::string>(), static_cast<unsigned>(count),
                        partition.at("include").get<std::vector<std::string>>(),
                        partition.at("exclude").get<std::vector<std::string>>()};
    if (!common_) common_ = std::move(common);
    else if (*common_ != common)
      refuse(file, "its source, number of partitions, `include` or `exclude` are not those of \"" + files_.begin()->second +
                       "\"; add reports of one source and the same options");
    if (const auto [other, is_new] = files_.emplace(static_cast<unsigned>(index), file); !is_new)
      refuse(file, "\"" + other->second + "\" is of partition " + std::to_string(index) + "/" + std::to_string(count) +
                       ", too; remove one of them");
    for (const json& entry : report.at("arrays")) add_array(file, entry);
  }

  void add_array(const std::string& file, const json& entry) {
    const std::string path = entry.at("path").get<std::string>();
    const text::coded_reason reason = parse_reason(file, entry);
    if (!entry.contains("sums")) {
      unreadable_.emplace(path, reason);
      return;
    }
    array_digest array{path,
                       entry.at("data_type").get<std::string>(),
                       entry.at("shape").get<std::vector<std::uint64_t>>(),
                       {},
                       reason.sentence,
                       reason.code};
    const lanes sums = parse_sums(file, entry.at("sums")), fill = parse_sums(file, entry.at("fill_sums"));
    const auto [place, is_new] = arrays_.try_emplace(path, array_parts{array, {0, 0}, fill});
    array_parts& parts = place->second;
    if (parts.array.data_type != array.data_type || parts.array.shape != array.shape || parts.fill != fill)
      refuse(file, "the data type, shape or fill value of \"" + path +
                       "\" is not that of the other reports; run all partitions on the same source, with the same options");
    if (parts.array.reason.empty()) text::set_reason(parts.array, reason.code, reason.sentence);
    for (std::size_t lane = 0; lane < sums.size(); ++lane) parts.sums[lane] = digesting::add(parts.sums[lane], sums[lane]);
  }

  static text::coded_reason parse_reason(const std::string& file, const json& entry) {
    if (!entry.contains("reason")) return {};
    const auto code = text::parse_reason_code(entry.at("code").get_ref<const std::string&>());
    if (!code || *code == reason_code::none) refuse(file, "it has an unknown code of a reason; use reports of this version");
    return {*code, entry.at("reason").get<std::string>()};
  }

  static lanes parse_sums(const std::string& file, const json& list) {
    lanes sums{};
    if (list.size() != sums.size()) refuse(file, "a sum in it is damaged; run its partition again");
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      const auto sum = parse_hexadecimal(list.at(lane).get<std::string>());
      if (!sum) refuse(file, "a sum in it is damaged; run its partition again");
      sums[lane] = *sum;
    }
    return sums;
  }

  std::optional<share_source> common_;
  std::map<unsigned, std::string> files_;  // by the number of the partition
  std::map<std::string, array_parts> arrays_;
  std::map<std::string, text::coded_reason> unreadable_;  // by their paths
};

}  // namespace

array_digest summed_array(const std::string& path, const array_sum& sum, bool is_share) {
  array_digest a{path, sum.form().name(), sum.shape(), is_share ? "" : sum.digest(), {}};
  if (is_share) {
    a.sums = digits_of(sum.added());
    a.fill_sums = digits_of(sum.fill());
  }
  return a;
}

array_digest skipped_array(const std::string& path, const text::coded_reason& reason) {
  array_digest a;
  a.path = path;
  text::set_reason(a, reason.code, reason.sentence);
  return a;
}

digest_report add_reports(const std::vector<std::string>& files) {
  if (files.empty()) throw error(errc::invalid_option, "there are no reports to add; name those of all partitions");
  report_sum sum;
  for (const std::string& file : files) sum.add(file);
  return sum.result();
}

}  // namespace zarrbits::digesting
