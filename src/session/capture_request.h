// From what a caller wants to look at to the buffers that the decoder fills; for session.cc.
#ifndef HEADLIGHT_SESSION_CAPTURE_REQUEST_H_
#define HEADLIGHT_SESSION_CAPTURE_REQUEST_H_

#include <cstddef>
#include <memory>

#include "model/forward_capture.h"
#include "session/session.h"

namespace headlight {

// For a computation of n_tokens tokens from position 0 on. Null without a request. Throws
// Error(kBadOption) naming the layer, head or row that is not there, Error(kOutOfMemory).
std::unique_ptr<ForwardCapture> MakePromptCapture(const ModelSpec& spec,
                                                  const CaptureRequest* request, size_t n_tokens);
// For a step of one token at position pos.
std::unique_ptr<ForwardCapture> MakeStepCapture(const ModelSpec& spec,
                                                const CaptureRequest* request, size_t pos);

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_CAPTURE_REQUEST_H_
