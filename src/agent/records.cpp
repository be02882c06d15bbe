// The lines of a trajectory, written.
#include "agent/records.hpp"

#include "core/hash.hpp"
#include "core/json.hpp"

namespace ptxbench {
namespace {

// Pretty JSON on one line, its number tokens unchanged.
std::string compact(const std::string& text) {
  json::ParseOptions options;
  options.lenient_numbers = true;
  const auto parsed = json::parse(text, options);
  return parsed ? json::to_string(parsed->root) : "null";
}

void sampling_object(json::Writer& out, const SamplingHints& sampling) {
  out.begin_object();
  if (sampling.temperature) out.field("temperature", *sampling.temperature);
  if (sampling.top_p) out.field("top_p", *sampling.top_p);
  if (sampling.max_tokens) out.field("max_tokens", *sampling.max_tokens);
  if (sampling.seed) out.field("seed", *sampling.seed);
  out.end_object();
}

std::string_view mode_name(TrajectoryMode mode) { return mode == TrajectoryMode::live ? "live" : "rejudged"; }

}  // namespace

std::string header_line(const Trajectory& t) {
  json::Writer out;
  out.begin_object()
      .field("ptxbench_trajectory", kTrajectorySchemaVersion)
      .field("ptxbench_version", t.ptxbench_version);
  out.field("mode", mode_name(t.mode));
  if (t.mode == TrajectoryMode::rejudged) out.field("rejudged_from", t.rejudged_from);
  out.field("created_us", t.created_us).field("seed", t.seed);
  out.key("definition").raw(compact(to_json(*t.definition)));
  out.key("workloads").begin_array();
  for (const Workload& workload : t.workloads) out.raw(compact(to_json(workload)));
  out.end_array();
  out.key("evaluate").raw(compact(to_json(t.evaluate)));
  out.key("sampling");
  sampling_object(out, t.sampling);
  out.field("device", t.device_name);
  out.key("pack");
  if (t.pack_hash.empty())
    out.null();
  else
    out.begin_object().field("name", t.pack_name).field("hash", t.pack_hash).end_object();
  out.field("max_turns", t.max_turns)
      .field("token_budget", t.token_budget)
      .field("time_budget_us", t.time_budget_us);
  out.key("stop_at_speedup");
  if (t.stop_at_speedup)
    out.number(*t.stop_at_speedup);
  else
    out.null();
  out.field("feedback_bytes", static_cast<std::uint64_t>(t.feedback_bytes));
  out.end_object();
  return std::move(out).str();
}

std::string turn_line(const TrajectoryTurn& record, const SamplingHints& sampling, TrajectoryMode mode) {
  const AgentTurn& turn = record.turn;
  json::Writer out;
  out.begin_object().field("turn", turn.turn).field("mode", mode_name(mode));
  out.key("messages").begin_array();
  for (const ChatMessage& message : record.messages)
    out.begin_object()
        .field("role", chat_role_name(message.role))
        .field("content", message.content)
        .end_object();
  out.end_array().field("request_sha256", record.request_hash);
  out.key("sampling");
  sampling_object(out, sampling);
  out.key("reply").begin_object().field("text", turn.reply.text).field("model", turn.reply.model);
  out.field("finish_reason", turn.reply.finish_reason).key("usage");
  if (turn.reply.usage)
    out.begin_object()
        .field("input_tokens", turn.reply.usage->input_tokens)
        .field("output_tokens", turn.reply.usage->output_tokens)
        .end_object();
  else
    out.null();
  out.end_object();
  out.key("candidate");
  if (turn.candidate) {
    out.begin_object().field("name", turn.candidate->name).key("files").begin_array();
    for (const SourceFile& file : turn.candidate->sources)
      out.begin_object().field("path", file.path).field("sha256", sha256_hex(file.content)).end_object();
    out.end_array().end_object();
  } else {
    out.null();
  }
  out.key("notes").begin_array();
  for (const std::string& note : turn.notes) out.string(note);
  out.end_array().field("seed", turn.seed);
  out.key("evaluation");
  if (turn.evaluation)
    out.raw(to_json(*turn.evaluation, 0));
  else
    out.null();
  out.key("status");
  if (turn.status)
    out.string(status_name(*turn.status));
  else
    out.null();
  out.field("feedback", turn.feedback);
  out.field("requested_us", turn.requested_us)
      .field("submitted_us", turn.submitted_us)
      .field("judged_us", turn.judged_us);
  out.end_object();
  return std::move(out).str();
}

std::string end_line(const TrajectoryEnd& end) {
  json::Writer out;
  out.begin_object()
      .key("end")
      .begin_object()
      .field("reason", end.reason)
      .field("turns", end.turns)
      .key("best_turn");
  if (end.best_turn > 0)
    out.integer(end.best_turn);
  else
    out.null();
  out.field("ended_us", end.ended_us).end_object().end_object();
  return std::move(out).str();
}

std::string conversation_hash(const std::vector<ChatMessage>& messages) {
  Hasher hasher;
  for (const ChatMessage& message : messages)
    hasher.field(chat_role_name(message.role)).field(message.content);
  return std::move(hasher).hex();
}

}  // namespace ptxbench
