// A trajectory, read.
#include "agent/records.hpp"
#include "core/guard.hpp"
#include "core/json.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ptxbench {
namespace {

using json::Cursor;

Result<std::string> text_field(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require(key));
  return cursor.as_string();
}

Result<std::int64_t> int_field(const Cursor& object, std::string_view key, std::int64_t least = 0) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require(key));
  PTXBENCH_TRY_ASSIGN(const std::int64_t value, cursor.as_int());
  if (value < least) return cursor.error("must be at least " + std::to_string(least));
  return value;
}

Result<std::uint64_t> unsigned_field(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::int64_t value, int_field(object, key));
  return static_cast<std::uint64_t>(value);
}

Result<SamplingHints> sampling_of(const Cursor& object) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require("sampling"));
  PTXBENCH_TRY(cursor.only({"temperature", "top_p", "max_tokens", "seed"}));
  SamplingHints out;
  for (const auto& [key, field] :
       {std::pair{"temperature", &out.temperature}, std::pair{"top_p", &out.top_p}}) {
    PTXBENCH_TRY_ASSIGN(const auto value, cursor.get(key));
    if (!value) continue;
    PTXBENCH_TRY_ASSIGN(*field, value->as_double());
  }
  PTXBENCH_TRY_ASSIGN(const auto tokens, cursor.get("max_tokens"));
  if (tokens) {
    PTXBENCH_TRY_ASSIGN(out.max_tokens, tokens->as_int());
  }
  PTXBENCH_TRY_ASSIGN(const auto seed, cursor.get("seed"));
  if (seed) {
    PTXBENCH_TRY_ASSIGN(out.seed, unsigned_field(cursor, "seed"));
  }
  return out;
}

Result<TrajectoryMode> mode_of(const Cursor& object) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require("mode"));
  PTXBENCH_TRY_ASSIGN(const std::string word, cursor.as_string());
  if (word == "live") return TrajectoryMode::live;
  if (word == "rejudged") return TrajectoryMode::rejudged;
  return cursor.error("the mode is \"live\" or \"rejudged\", not \"" + word + "\"");
}

// A part that has a parser of its own; what it complains about is placed below the part.
template <class T>
Result<T> inner(const Cursor& cursor, Result<T> parsed) {
  if (parsed) return parsed;
  Error error = std::move(parsed).error();
  error.where = {cursor.location().file, cursor.pointer() + error.where.pointer, 0, 0};
  return error;
}

// One made in memory needs no `reference`; the schema's reader wants it.
Result<DefinitionPtr> definition_of(json::Value value) {
  if (value.kind != json::Kind::object || value.find("reference") != nullptr)
    return parse_definition(json::to_string(value));
  json::Value stand_in;
  stand_in.kind = json::Kind::string;
  stand_in.text = "def run():\n    pass\n";
  value.members.emplace_back("reference", std::move(stand_in));
  PTXBENCH_TRY_ASSIGN(const DefinitionPtr parsed, parse_definition(json::to_string(value)));
  Definition definition = *parsed;
  definition.reference.clear();
  return make_definition(std::move(definition));
}

Result<void> read_header(const Cursor& root, Trajectory& t) {
  PTXBENCH_TRY(
      root.only({"ptxbench_trajectory", "ptxbench_version", "mode", "rejudged_from", "created_us", "seed",
                 "definition", "workloads", "evaluate", "sampling", "device", "pack", "max_turns",
                 "token_budget", "time_budget_us", "stop_at_speedup", "feedback_bytes"}));
  PTXBENCH_TRY_ASSIGN(const std::int64_t version, int_field(root, "ptxbench_trajectory"));
  if (version != kTrajectorySchemaVersion)
    return root.error("this library reads trajectories of version 1, not " + std::to_string(version));
  PTXBENCH_TRY_ASSIGN(t.ptxbench_version, text_field(root, "ptxbench_version"));
  PTXBENCH_TRY_ASSIGN(t.mode, mode_of(root));
  if (t.mode == TrajectoryMode::rejudged) {
    PTXBENCH_TRY_ASSIGN(t.rejudged_from, text_field(root, "rejudged_from"));
  } else if (root.value().find("rejudged_from") != nullptr) {
    return root.error("rejudged_from is of a trajectory with the mode \"rejudged\"");
  }
  PTXBENCH_TRY_ASSIGN(t.created_us, int_field(root, "created_us"));
  PTXBENCH_TRY_ASSIGN(t.seed, unsigned_field(root, "seed"));
  PTXBENCH_TRY_ASSIGN(const Cursor definition, root.require("definition"));
  PTXBENCH_TRY_ASSIGN(t.definition, inner(definition, definition_of(definition.value())));
  PTXBENCH_TRY_ASSIGN(const Cursor workloads, root.require("workloads"));
  PTXBENCH_TRY_ASSIGN(const auto items, workloads.items());
  for (const Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(Workload workload,
                        inner(item, parse_workload(t.definition, json::to_string(item.value()))));
    t.workloads.push_back(std::move(workload));
  }
  if (t.workloads.empty()) return workloads.error("there must be a workload");
  PTXBENCH_TRY_ASSIGN(const Cursor evaluate, root.require("evaluate"));
  PTXBENCH_TRY_ASSIGN(t.evaluate, inner(evaluate, parse_evaluate_options(json::to_string(evaluate.value()))));
  PTXBENCH_TRY_ASSIGN(t.sampling, sampling_of(root));
  PTXBENCH_TRY_ASSIGN(t.device_name, text_field(root, "device"));
  PTXBENCH_TRY_ASSIGN(const Cursor pack, root.require("pack"));
  if (!pack.is_null()) {
    PTXBENCH_TRY(pack.only({"name", "hash"}));
    PTXBENCH_TRY_ASSIGN(t.pack_name, text_field(pack, "name"));
    PTXBENCH_TRY_ASSIGN(const Cursor hash, pack.require("hash"));
    PTXBENCH_TRY_ASSIGN(t.pack_hash, hash.as_nonempty_string());
  }
  PTXBENCH_TRY_ASSIGN(const std::int64_t turns, int_field(root, "max_turns", 1));
  if (turns > kMostTurns) return root.error("max_turns is larger than " + std::to_string(kMostTurns));
  t.max_turns = static_cast<int>(turns);
  PTXBENCH_TRY_ASSIGN(t.token_budget, unsigned_field(root, "token_budget"));
  PTXBENCH_TRY_ASSIGN(t.time_budget_us, unsigned_field(root, "time_budget_us"));
  PTXBENCH_TRY_ASSIGN(const Cursor speedup, root.require("stop_at_speedup"));
  if (!speedup.is_null()) {
    PTXBENCH_TRY_ASSIGN(t.stop_at_speedup, speedup.as_double());
  }
  PTXBENCH_TRY_ASSIGN(t.feedback_bytes, unsigned_field(root, "feedback_bytes"));
  return {};
}

Result<ChatReply> reply_of(const Cursor& cursor) {
  ChatReply reply;
  PTXBENCH_TRY(cursor.only({"text", "model", "finish_reason", "usage"}));
  PTXBENCH_TRY_ASSIGN(reply.text, text_field(cursor, "text"));
  PTXBENCH_TRY_ASSIGN(reply.model, text_field(cursor, "model"));
  PTXBENCH_TRY_ASSIGN(reply.finish_reason, text_field(cursor, "finish_reason"));
  PTXBENCH_TRY_ASSIGN(const Cursor usage, cursor.require("usage"));
  if (!usage.is_null()) {
    PTXBENCH_TRY(usage.only({"input_tokens", "output_tokens"}));
    ChatUsage counts;
    PTXBENCH_TRY_ASSIGN(counts.input_tokens, unsigned_field(usage, "input_tokens"));
    PTXBENCH_TRY_ASSIGN(counts.output_tokens, unsigned_field(usage, "output_tokens"));
    reply.usage = counts;
  }
  return reply;
}

Result<void> read_turn(const Cursor& root, Trajectory& t) {
  PTXBENCH_TRY(
      root.only({"turn", "mode", "messages", "request_sha256", "sampling", "reply", "candidate", "notes",
                 "seed", "evaluation", "status", "feedback", "requested_us", "submitted_us", "judged_us"}));
  TrajectoryTurn record;
  AgentTurn& turn = record.turn;
  PTXBENCH_TRY_ASSIGN(const std::int64_t number, int_field(root, "turn", 1));
  if (number != static_cast<std::int64_t>(t.turns.size()) + 1)
    return root.error("turn " + std::to_string(t.turns.size() + 1) + " is expected, not " +
                      std::to_string(number));
  if (number > t.max_turns) return root.error("there are more turns than the header's max_turns");
  turn.turn = static_cast<int>(number);
  PTXBENCH_TRY_ASSIGN(const TrajectoryMode mode, mode_of(root));
  if (mode != t.mode) return root.error("the turn's mode is not the header's");
  PTXBENCH_TRY_ASSIGN(const Cursor messages, root.require("messages"));
  PTXBENCH_TRY_ASSIGN(const auto items, messages.items());
  for (const Cursor& item : items) {
    ChatMessage message;
    PTXBENCH_TRY(item.only({"role", "content"}));
    PTXBENCH_TRY_ASSIGN(const std::string role, text_field(item, "role"));
    const auto known = chat_role_from_name(role);
    if (!known) return item.error("no role is named \"" + role + "\"");
    message.role = *known;
    PTXBENCH_TRY_ASSIGN(message.content, text_field(item, "content"));
    record.messages.push_back(std::move(message));
  }
  if (record.messages.empty()) return messages.error("a turn adds a message");
  PTXBENCH_TRY_ASSIGN(record.request_hash, text_field(root, "request_sha256"));
  PTXBENCH_TRY(sampling_of(root));
  PTXBENCH_TRY_ASSIGN(const Cursor reply, root.require("reply"));
  PTXBENCH_TRY_ASSIGN(turn.reply, reply_of(reply));
  PTXBENCH_TRY(root.require("candidate"));
  PTXBENCH_TRY(root.require("notes"));
  ParsedReply parsed =
      parse_reply(turn.reply.text, *t.definition, "turn_" + std::to_string(turn.turn), turn.reply.model);
  turn.candidate = std::move(parsed.candidate);
  turn.notes = std::move(parsed.notes);
  PTXBENCH_TRY_ASSIGN(turn.seed, unsigned_field(root, "seed"));
  PTXBENCH_TRY_ASSIGN(const Cursor evaluation, root.require("evaluation"));
  if (!evaluation.is_null()) {
    PTXBENCH_TRY_ASSIGN(turn.evaluation,
                        inner(evaluation, parse_evaluation(json::to_string(evaluation.value()))));
    turn.status = turn.evaluation->status(true);
  }
  PTXBENCH_TRY_ASSIGN(const Cursor status, root.require("status"));
  const std::string word = turn.status ? std::string(status_name(*turn.status)) : std::string();
  if (status.is_null() ? turn.status.has_value() : status.value().text != word)
    return status.error("the status is not that of the evaluation");
  PTXBENCH_TRY_ASSIGN(turn.feedback, text_field(root, "feedback"));
  PTXBENCH_TRY_ASSIGN(turn.requested_us, int_field(root, "requested_us"));
  PTXBENCH_TRY_ASSIGN(turn.submitted_us, int_field(root, "submitted_us"));
  PTXBENCH_TRY_ASSIGN(turn.judged_us, int_field(root, "judged_us"));
  t.turns.push_back(std::move(record));
  return {};
}

Result<void> read_end(const Cursor& end, Trajectory& t) {
  PTXBENCH_TRY(end.only({"reason", "turns", "best_turn", "ended_us"}));
  PTXBENCH_TRY_ASSIGN(const Cursor reason, end.require("reason"));
  PTXBENCH_TRY_ASSIGN(t.end_reason, reason.as_nonempty_string());
  PTXBENCH_TRY_ASSIGN(const std::int64_t turns, int_field(end, "turns"));
  if (turns != static_cast<std::int64_t>(t.turns.size()))
    return end.error("the number of turns is not that of the records");
  PTXBENCH_TRY_ASSIGN(const Cursor best, end.require("best_turn"));
  if (!best.is_null()) PTXBENCH_TRY(best.as_int());
  PTXBENCH_TRY_ASSIGN(t.ended_us, int_field(end, "ended_us"));
  return {};
}

Result<void> read_line(std::string_view line, const std::string& file, int number, Trajectory& t) {
  json::ParseOptions options;
  options.file = file;
  options.lenient_numbers = true;  // a workload's scalar may be one
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(line, options));
  const Cursor root(document);
  if (number == 1) return read_header(root, t);
  if (!t.end_reason.empty()) return root.error("nothing comes after the end");
  PTXBENCH_TRY_ASSIGN(const auto end, root.get("end"));
  if (!end) return read_turn(root, t);
  PTXBENCH_TRY(root.only({"end"}));
  return read_end(*end, t);
}

Result<Trajectory> parse(std::string_view text, const std::string& file) {
  Trajectory t;
  const std::size_t whole = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  t.torn = whole < text.size();
  t.bytes = std::string(text.substr(0, whole));
  if (whole == 0)
    return make_error(ErrorCode::parse,
                      text.empty() ? "the trajectory is empty" : "the trajectory has no whole line",
                      {file, {}, 1, 0});
  std::string_view rest = t.bytes;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const Result<void> read = read_line(rest.substr(0, end), file, number, t);
    if (!read) {
      Error error = read.error();
      error.where.file = file;
      error.where.line = number;
      return error;
    }
    rest.remove_prefix(end + 1);
  }
  return t;
}

}  // namespace

Result<Trajectory> parse_trajectory(std::string_view text, const std::string& file) {
  return guarded([&] { return parse(text, file); });
}

Result<Trajectory> load_trajectory(const std::string& file) {
  return guarded([&]() -> Result<Trajectory> {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error))
      return make_error(ErrorCode::not_found, "there is no such file", {file, {}, 0, 0});
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (error || size > (std::uintmax_t{1} << 30))
      return make_error(ErrorCode::io, "cannot be read, or is larger than 1 GiB", {file, {}, 0, 0});
    std::string text(static_cast<std::size_t>(size), '\0');
    std::ifstream in(file, std::ios::binary);
    if (size > 0 && !in.read(text.data(), static_cast<std::streamsize>(size)))
      return make_error(ErrorCode::io, "cannot be read", {file, {}, 0, 0});
    return parse(text, file);
  });
}

}  // namespace ptxbench
