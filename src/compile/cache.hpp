// The content-addressed cache of compilations, safe for many processes.
//
// Layout: <dir>/v1/<first two hex digits>/<key>. An entry is the SHA-256 of its body in hex, a newline, and
// the body: a Message of type "compiled". Entries are written beside their place and renamed, so that a
// reader sees a whole one or none; two writers of one key write the same bytes, give or take a duration. A
// damaged entry is a miss.
#pragma once

#include <ptxbench/compile.hpp>

#include <optional>
#include <string>

namespace ptxbench {

class CompileCache {
 public:
  explicit CompileCache(std::string dir) : dir_(std::move(dir)) {}
  // `cached` is set in what comes back.
  std::optional<Compiled> load(const std::string& key) const;
  // Failing to write is no error: the cache is an optimisation. Returns whether the entry is there now.
  bool store(const std::string& key, const Compiled& compiled) const;
  std::string path_of(const std::string& key) const;

 private:
  std::string dir_;
};

}  // namespace ptxbench
