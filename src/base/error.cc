#include "base/error.h"

namespace headlight {

const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadModel:
      return "BadModel";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kBadOption:
      return "BadOption";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemory";
    case ErrorCode::kContextFull:
      return "ContextFull";
    case ErrorCode::kIntegrity:
      return "Integrity";
    case ErrorCode::kAborted:
      return "Aborted";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Internal";
}

}  // namespace headlight
