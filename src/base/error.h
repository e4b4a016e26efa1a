// The one exception type of Headlight. Thrown at boundaries only (file reader, options,
// allocation), never inside a kernel; the bindings turn it into data (wasm/guard.h), so no
// exception reaches JavaScript.
#ifndef HEADLIGHT_BASE_ERROR_H_
#define HEADLIGHT_BASE_ERROR_H_

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace headlight {

enum class ErrorCode {
  kBadModel,     // the file is wrong: details name the key, tensor or byte offset
  kUnsupported,  // the file is right, this build cannot run it: details say what is supported
  kBadOption,    // a caller's argument is wrong: details name it, its value and the allowed range
  kOutOfMemory,  // details: "needed_bytes" and, where known, "had_bytes"
  kContextFull,  // details: "needed_tokens" and "n_ctx"
  kIntegrity,    // bytes do not agree with their checksum, or are not what they should be
  kAborted,      // the caller asked to stop
  kInternal,     // a defect of Headlight itself
};

// Stable wire name of a code, e.g. "BadModel"; the JavaScript error classes carry the same strings.
const char* ErrorCodeName(ErrorCode code);

class Error : public std::exception {
 public:
  // Named facts for programs, e.g. {"key", "llama.block_count"}; the message already says them in
  // words.
  using Details = std::vector<std::pair<std::string, std::string>>;

  Error(ErrorCode code, std::string message, Details details = {})
      : code_(code), message_(std::move(message)), details_(std::move(details)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const Details& details() const { return details_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  Details details_;
};

}  // namespace headlight

#endif  // HEADLIGHT_BASE_ERROR_H_
