// Error: what it carries, and the names that JavaScript knows its codes by.
#include "base/error.h"

#include <doctest/doctest.h>

#include <exception>
#include <set>
#include <string>

namespace headlight {

TEST_CASE("error: code, message and details come out as they went in") {
  const Error error(ErrorCode::kBadModel, "key 'a' is missing", {{"key", "a"}, {"offset", "24"}});
  CHECK(error.code() == ErrorCode::kBadModel);
  CHECK(error.message() == "key 'a' is missing");
  CHECK(std::string(error.what()) == "key 'a' is missing");
  REQUIRE(error.details().size() == 2);
  CHECK(error.details()[1].first == "offset");
  CHECK(error.details()[1].second == "24");
}

TEST_CASE("error: it is a std::exception and survives being copied and rethrown") {
  std::string message;
  try {
    try {
      throw Error(ErrorCode::kAborted, "stopped");
    } catch (const Error& error) {
      Error copy = error;
      throw copy;
    }
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK(message == "stopped");
}

TEST_CASE("error: each code has its own wire name") {
  struct Row {
    ErrorCode code;
    const char* name;
  };
  const Row rows[] = {
      {ErrorCode::kBadModel, "BadModel"},       {ErrorCode::kUnsupported, "Unsupported"},
      {ErrorCode::kBadOption, "BadOption"},     {ErrorCode::kOutOfMemory, "OutOfMemory"},
      {ErrorCode::kContextFull, "ContextFull"}, {ErrorCode::kAborted, "Aborted"},
      {ErrorCode::kIntegrity, "Integrity"},     {ErrorCode::kInternal, "Internal"},
  };
  std::set<std::string> names;
  for (const Row& row : rows) {
    CHECK(std::string(ErrorCodeName(row.code)) == row.name);
    names.insert(ErrorCodeName(row.code));
  }
  CHECK(names.size() == std::size(rows));
}

}  // namespace headlight
