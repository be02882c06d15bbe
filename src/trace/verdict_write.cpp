// Verdict and Evaluation as JSON text (docs/verdict.md).
#include "core/json.hpp"
#include "trace/verdict_fields.hpp"

#include <cmath>

namespace ptxbench {
namespace {

class VerdictWriter {
 public:
  explicit VerdictWriter(int indent) : out_(json::Writer::Options{indent, false}) {}

  void verdict(const Verdict& v) {
    out_.begin_object().field("schema_version", kVerdictSchemaVersion);
    members(v);
    out_.end_object();
  }

  void evaluation(const Evaluation& e) {
    out_.begin_object().field("schema_version", kVerdictSchemaVersion);
    out_.field("definition", e.definition)
        .field("solution", e.solution)
        .field("solution_hash", e.solution_hash);
    out_.field("outcome", outcome_name(e.outcome()));
    out_.key("status");
    put(e.status());
    out_.key("speedup");
    put(e.speedup());
    out_.key("verdicts").begin_array();
    for (const Verdict& v : e.verdicts) verdict(v);
    out_.end_array().end_object();
  }

  std::string str() && { return std::move(out_).str(); }

 private:
  template <class T>
  void members(const T& block) {
    fields(
        [this](const char* name, const auto& member) {
          out_.key(name);
          put(member);
        },
        block, &block);
  }

  template <VerdictBlock T>
  void put(const T& block) {
    out_.begin_object();
    members(block);
    out_.end_object();
  }

  void put(const std::string& v) { out_.string(v); }
  void put(bool v) { out_.boolean(v); }
  void put(int v) { out_.integer(v); }
  void put(std::int64_t v) { out_.integer(v); }
  void put(std::uint64_t v) { out_.unsigned_integer(v); }
  void put(double v) {
    if (std::isinf(v)) {
      out_.string(json::format_double(v));
    } else {
      out_.number(v);
    }
  }
  void put(Status v) { out_.string(status_name(v)); }
  void put(Outcome v) { out_.string(outcome_name(v)); }
  void put(Availability v) { out_.string(availability_name(v)); }
  void put(Severity v) { out_.string(severity_name(v)); }
  void put(ContractState v) { out_.string(contract_state_name(v)); }
  void put(Integrity v) { out_.string(v == Integrity::clean ? "clean" : "violated"); }
  void put(DType v) { out_.string(dtype_name(v)); }

  template <class T>
  void put(const std::optional<T>& v) {
    if (v) {
      put(*v);
    } else {
      out_.null();
    }
  }
  template <class T>
  void put(const std::vector<T>& items) {
    out_.begin_array();
    for (const T& item : items) put(item);
    out_.end_array();
  }
  template <class T>
  void put(const std::vector<std::pair<std::string, T>>& members) {
    out_.begin_object();
    for (const auto& [name, value] : members) {
      out_.key(name);
      put(value);
    }
    out_.end_object();
  }
  // Text that is no JSON object is a defect of whoever made it; it is kept where a person can see it.
  template <class S>
  void put(const JsonText<S>& v) {
    if (v.text.empty()) {
      out_.null();
      return;
    }
    const auto document = json::parse(v.text);
    if (document && document->root.kind == json::Kind::object) {
      out_.value(document->root);
    } else {
      out_.begin_object().field("not_an_object", v.text).end_object();
    }
  }

  json::Writer out_;
};

}  // namespace

std::string to_json(const Verdict& verdict, int indent) {
  VerdictWriter writer(indent);
  writer.verdict(verdict);
  return std::move(writer).str();
}

std::string to_json(const Evaluation& evaluation, int indent) {
  VerdictWriter writer(indent);
  writer.evaluation(evaluation);
  return std::move(writer).str();
}

}  // namespace ptxbench
