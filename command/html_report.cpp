// SPDX-License-Identifier: BSL-1.0
#include "command/html_report.hpp"

#include "command/printable.hpp"
#include "command/progress.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace zarrbits::command {

namespace {

using text::json;

// Names and messages are hostile: nothing of them becomes markup, nor a character that HTML does not allow.
std::string escape_markup(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string text_in(const json& object, const char* name) {
  const auto value = object.find(name);
  return value == object.end() ? "" : value->is_string() ? value->get<std::string>() : value->dump();
}

std::uint64_t count_in(const json& object, const char* name) {
  const auto value = object.find(name);
  return value != object.end() && value->is_number_unsigned() ? value->get<std::uint64_t>() : 0;
}

bool truth_in(const json& object, const char* name, bool absent = false) {
  const auto value = object.find(name);
  return value != object.end() && value->is_boolean() ? value->get<bool>() : absent;
}

const json& list_in(const json& object, const char* name) {
  static const json none = json::array();
  const auto value = object.find(name);
  return value != object.end() && value->is_array() ? *value : none;
}

// A cell of a table, as HTML.
std::string text_cell(const std::string& text) { return "<td>" + escape_markup(text) + "</td>"; }
std::string number_cell(std::uint64_t number) { return "<td class=\"number\">" + std::to_string(number) + "</td>"; }
std::string size_cell(std::optional<std::uint64_t> bytes, const std::string& before = "") {
  if (!bytes) return "<td></td>";
  return "<td class=\"number\" data-bytes=\"" + std::to_string(*bytes) + "\">" + escape_markup(before) +
         text::format_bytes(*bytes) + "</td>";
}
std::string ratio_cell(std::uint64_t before, std::uint64_t after) {
  char ratio[32] = "";
  if (before > 0) std::snprintf(ratio, sizeof ratio, "%.2f", static_cast<double>(after) / static_cast<double>(before));
  return text_cell(ratio);
}

// Two bars, one above the other, whose full width is `max`.
std::string bars_cell(std::uint64_t before, std::uint64_t after, std::uint64_t max) {
  const auto bar = [&](const char* name, std::uint64_t bytes) {
    char width[32];
    std::snprintf(width, sizeof width, "%.1f",
                  100 * static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(1, max)));
    return std::string("<div class=\"") + name + "\" style=\"width:" + width + "%\"></div>";
  };
  return "<td class=\"bars\">" + bar("before", before) + bar("after", after) + "</td>";
}

class html_page {
 public:
  explicit html_page(const std::string& title)
      : text_("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" + escape_markup(title) +
              "</title>\n<style>\n"
              "body { font-family: sans-serif; margin: 2em; }\n"
              "table { border-collapse: collapse; margin: 1em 0; }\n"
              "th, td { border-bottom: 1px solid #ccc; padding: 0.2em 0.8em; text-align: left; vertical-align: top; }\n"
              ".number { text-align: right; white-space: nowrap; }\n"
              ".bars { width: 12em; }\n"
              ".before, .after { height: 0.5em; margin: 0.15em 0; background: #999; }\n"
              ".after { background: #37c; }\n"
              ".lost { color: #b00; }\n"
              "</style>\n</head>\n<body>\n<h1>" +
              escape_markup(title) + "</h1>\n") {}

  void heading(const std::string& text, bool is_loss = false) {
    text_ += (is_loss ? "<h2 class=\"lost\">" : "<h2>") + escape_markup(text) + "</h2>\n";
  }
  void paragraph(const std::string& text) { text_ += "<p>" + escape_markup(text) + "</p>\n"; }
  // Rows of cells. No table without rows.
  void table(std::initializer_list<const char*> columns, const std::vector<std::string>& rows) {
    table(std::vector<std::string>(columns.begin(), columns.end()), rows);
  }
  void table(const std::vector<std::string>& columns, const std::vector<std::string>& rows) {
    if (rows.empty()) return;
    text_ += "<table>\n<tr>";
    for (const std::string& column : columns) text_ += "<th>" + escape_markup(column) + "</th>";
    text_ += "</tr>\n";
    for (const std::string& row : rows) text_ += "<tr>" + row + "</tr>\n";
    text_ += "</table>\n";
  }
  std::string take() { return std::move(text_) + "</body>\n</html>\n"; }

 private:
  std::string text_;
};

std::string name_of(const json& entry) {
  return text_in(entry, "path") + (entry.contains("attribute") ? " attribute " + text_in(entry, "attribute") : "");
}

std::string from_to(const json& report) { return text_in(report, "source") + " to " + text_in(report, "store"); }

void add_losses(html_page& page, const std::vector<std::string>& rows) {
  if (rows.empty()) return;
  page.heading("LOST", true);
  page.table({"name", "kind", "reason"}, rows);
}

void add_left_out_files(const json& report, std::vector<std::string>& losses) {
  for (const json& file : list_in(report, "sources")) {
    if (!truth_in(file, "left_out")) continue;
    const json& notes = list_in(file, "notes");
    losses.push_back(text_cell(text_in(file, "file")) + text_cell("file") +
                     text_cell(notes.empty() || !notes[0].is_string() ? "" : notes[0].get<std::string>()));
  }
}

void add_notes(html_page& page, const json& report) {
  std::vector<std::string> rows;
  for (const json& file : list_in(report, "sources")) {
    for (const json& note : truth_in(file, "left_out") ? json::array() : list_in(file, "notes"))
      rows.push_back(text_cell(text_in(file, "file")) + text_cell(note.is_string() ? note.get<std::string>() : ""));
  }
  for (const json& file : list_in(report, "refused_files"))
    rows.push_back(text_cell(text_in(file, "file")) + text_cell("not read: " + text_in(file, "reason")));
  if (rows.empty()) return;
  page.heading("Files");
  page.table({"file", "note"}, rows);
}

std::string conversion_page(const json& report) {
  html_page page(from_to(report));
  std::vector<std::string> losses;
  add_left_out_files(report, losses);
  std::uint64_t max = 0, before = 0, after = 0;
  std::vector<const json*> datasets;
  for (const json& entry : list_in(report, "objects")) {
    const bool is_skipped = text_in(entry, "outcome") == "skipped";
    if (truth_in(entry, "lossy") || (is_skipped && truth_in(entry, "selected", true)))
      losses.push_back(text_cell(name_of(entry)) + text_cell(text_in(entry, "kind")) + text_cell(text_in(entry, "reason")));
    if (text_in(entry, "kind") != "dataset" || !entry.contains("source_bytes") || !entry.contains("store_bytes")) continue;
    datasets.push_back(&entry);
    max = std::max({max, count_in(entry, "source_bytes"), count_in(entry, "store_bytes")});
    before += count_in(entry, "source_bytes");
    after += count_in(entry, "store_bytes");
  }
  add_losses(page, losses);
  std::string counts;
  if (const auto summary = report.find("summary"); summary != report.end() && summary->is_object()) {
    for (const auto& [outcome, number] : summary->items())
      if (number != 0) counts += (counts.empty() ? "objects: " : ", ") + number.dump() + " " + outcome;
  }
  if (!counts.empty()) page.paragraph(counts);
  std::vector<std::string> rows;
  const auto add =
      [&](const std::string& name, const std::string& outcome, std::uint64_t source, std::uint64_t store, std::uint64_t full) {
    rows.push_back(text_cell(name) + text_cell(outcome) + size_cell(source) + size_cell(store) + ratio_cell(source, store) +
                   bars_cell(source, store, full));
  };
  for (const json* d : datasets)
    add(text_in(*d, "path"), text_in(*d, "outcome"), count_in(*d, "source_bytes"), count_in(*d, "store_bytes"), max);
  if (datasets.size() > 1) add("all", "", before, after, std::max(before, after));
  page.heading("Datasets");
  page.table({"dataset", "outcome", "in source", "in store", "ratio", "sizes"}, rows);
  add_notes(page, report);
  return page.take();
}

std::string plan_page(const json& report) {
  html_page page("Plan of a conversion");
  std::vector<std::string> losses, rows;
  add_left_out_files(report, losses);
  std::uint64_t max = 0, before = 0, after = 0, objects = count_in(report, "groups");
  for (const json& d : list_in(report, "datasets")) {
    if (text_in(d, "outcome") == "skipped")
      losses.push_back(text_cell(text_in(d, "path")) + text_cell("dataset") + text_cell(text_in(d, "reason")));
    max = std::max({max, count_in(d, "source_bytes"), count_in(d, "store_bytes")});
    before += count_in(d, "source_bytes");
    after += count_in(d, "store_bytes");
    objects += count_in(d, "objects");
  }
  add_losses(page, losses);
  const auto size = [](const json& object, const char* name) {
    return object.contains(name) ? std::optional(count_in(object, name)) : std::nullopt;
  };
  for (const json& d : list_in(report, "datasets")) {
    const bool is_bound = text_in(d, "outcome") != "raw" && count_in(d, "store_bytes") > 0;
    rows.push_back(text_cell(text_in(d, "path")) + text_cell(text_in(d, "outcome")) + number_cell(count_in(d, "objects")) +
                   size_cell(count_in(d, "source_bytes")) + size_cell(size(d, "estimated_bytes"), "about ") +
                   size_cell(count_in(d, "store_bytes"), is_bound ? "<= " : "") + text_cell(text_in(d, "how")) +
                   bars_cell(count_in(d, "source_bytes"), size(d, "estimated_bytes").value_or(count_in(d, "store_bytes")), max));
  }
  if (rows.size() > 1) {
    rows.push_back(text_cell("all") + text_cell("") + number_cell(objects) + size_cell(before) +
                   size_cell(size(report, "estimated_bytes"), "about ") + size_cell(after, "<= ") + text_cell("") +
                   bars_cell(before, size(report, "estimated_bytes").value_or(after), std::max(before, after)));
  }
  page.heading("Datasets");
  page.table({"dataset", "outcome", "objects", "in source", "about", "in store", "how", "sizes"}, rows);
  if (const auto seconds = report.find("seconds"); seconds != report.end() && seconds->is_number())
    page.paragraph("about " + duration_text(seconds->get<double>()) + " to read and encode it here, without the time to write");
  if (const auto free = size(report, "free_bytes")) page.paragraph(text::format_bytes(*free) + " are free for the store");
  add_notes(page, report);
  return page.take();
}

std::string verification_page(const json& report) {
  html_page page(from_to(report));
  std::vector<std::string> findings, counts, only;
  for (const json& f : list_in(report, "findings")) {
    std::string index;
    for (const json& i : list_in(f, "index")) index += (index.empty() ? "" : "x") + i.dump();
    findings.push_back(text_cell(text_in(f, "outcome")) + text_cell(name_of(f)) + text_cell(index) +
                       text_cell(text_in(f, "source_value")) + text_cell(text_in(f, "store_value")) +
                       text_cell(text_in(f, "reason")));
  }
  for (const json& path : list_in(report, "only_in_store"))
    only.push_back(text_cell(path.is_string() ? path.get<std::string>() : "") + text_cell("node") + text_cell(""));
  for (const json& e : list_in(report, "extras"))
    only.push_back(text_cell(text_in(e, "store_path")) + text_cell(text_in(e, "kind")) + text_cell(text_in(e, "name")));
  page.paragraph(findings.empty() && only.empty() ? "equal" : "not everything is equal");
  page.table({"what", "name", "at", "in source", "in store", "reason"}, findings);
  if (!only.empty()) {
    page.heading("Only in the store", true);
    page.table({"in store", "kind", "name"}, only);
  }
  std::vector<std::string> columns{"kind"};
  for (const auto& [kind, verdicts] : report.items()) {
    if (!verdicts.is_object() || !verdicts.contains("differs")) continue;
    if (columns.size() == 1)
      for (const auto& [verdict, number] : verdicts.items()) columns.push_back(verdict);
    std::string row = text_cell(kind);
    for (std::size_t i = 1; i < columns.size(); ++i) row += number_cell(count_in(verdicts, columns[i].c_str()));
    counts.push_back(std::move(row));
  }
  page.heading("Compared");
  page.table(columns, counts);
  return page.take();
}

}  // namespace

std::string html_report(std::string_view report) {
  const json document = text::parse_json(report);
  if (document.contains("findings")) return verification_page(document);
  return document.contains("objects") ? conversion_page(document) : plan_page(document);
}

}  // namespace zarrbits::command
