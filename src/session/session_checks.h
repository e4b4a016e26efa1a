// What a caller gives a session, checked before anything changes; for session.cc.
#ifndef HEADLIGHT_SESSION_SESSION_CHECKS_H_
#define HEADLIGHT_SESSION_SESSION_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kv/eviction.h"
#include "session/session.h"

namespace headlight {

// Throws Error(kBadOption) naming option `name` and the first id that is not below vocab_size.
void CheckIds(const char* name, std::span<const uint32_t> ids, size_t vocab_size);
// Throws Error(kBadOption) for no token or a wrong one, Error(kContextFull) for more than n_ctx.
void CheckTokens(std::span<const uint32_t> tokens, size_t n_ctx, size_t vocab_size);
// Throw Error(kUnsupported) where an eviction chooses rows.
void CheckCapture(const CaptureRequest* request, const EvictionOptions& eviction);
void CheckSave(const EvictionOptions& eviction);

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_SESSION_CHECKS_H_
