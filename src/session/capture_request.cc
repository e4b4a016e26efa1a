#include "session/capture_request.h"

#include <numeric>
#include <utility>

namespace headlight {
namespace {

std::vector<uint32_t> Positions(const CaptureRequest& request, size_t n_tokens) {
  std::vector<uint32_t> positions;
  switch (request.rows_of) {
    case CaptureRequest::RowsOf::kLast:
      positions = {static_cast<uint32_t>(n_tokens - 1)};
      break;
    case CaptureRequest::RowsOf::kAll:
      positions.resize(n_tokens);
      std::iota(positions.begin(), positions.end(), 0u);
      break;
    case CaptureRequest::RowsOf::kListed:
      CheckIndices("capture.rows", request.rows, n_tokens,
                   "the number of tokens that are computed");
      positions = request.rows;
      break;
  }
  return positions;
}

}  // namespace

std::unique_ptr<ForwardCapture> MakePromptCapture(const ModelSpec& spec,
                                                  const CaptureRequest* request, size_t n_tokens) {
  if (request == nullptr) return nullptr;
  CheckCapture(spec, request->what);
  return std::make_unique<ForwardCapture>(spec, request->what, Positions(*request, n_tokens),
                                          n_tokens);
}

std::unique_ptr<ForwardCapture> MakeStepCapture(const ModelSpec& spec,
                                                const CaptureRequest* request, size_t pos) {
  if (request == nullptr) return nullptr;
  return std::make_unique<ForwardCapture>(
      spec, request->what, std::vector<uint32_t>{static_cast<uint32_t>(pos)}, pos + 1);
}

}  // namespace headlight
