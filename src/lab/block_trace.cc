#include "lab/block_trace.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lab/lab_error.h"
#include "model/decoder.h"
#include "session/session_plan.h"

namespace headlight {
namespace {

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Tracer : public LayerObserver {
 public:
  explicit Tracer(size_t layer) : layer_(layer) {}

  // The first pass keeps the values, the others only add their times.
  void OnRows(size_t layer, LayerTensor what, const LayerRows& rows) noexcept override {
    if (layer != layer_) return;
    const double ms = what == LayerTensor::kInput ? 0.0 : MsSince(last_);
    if (trace.n_passes == 0) Keep(what, rows);
    if (i_next_ < trace.tensors.size()) trace.tensors[i_next_++].ms += ms;
    last_ = Clock::now();
  }

  void EndPass() {
    i_next_ = 0;
    ++trace.n_passes;
  }

  BlockTrace trace;

 private:
  void Keep(LayerTensor what, const LayerRows& rows) {
    trace.tensors.push_back({what, rows.n_rows, rows.n_cols, 0.0});
    size_t at = trace.values.size();
    trace.values.resize(at + rows.n_rows * rows.n_cols);
    for (size_t t = 0; t < rows.n_rows; ++t, at += rows.n_cols) {
      std::copy_n(rows.data + t * rows.stride, rows.n_cols, trace.values.data() + at);
    }
  }

  size_t layer_;
  size_t i_next_ = 0;
  Clock::time_point last_;
};

}  // namespace

BlockTrace TraceBlock(std::shared_ptr<const Model> model, std::span<const uint32_t> tokens,
                      const BlockTraceOptions& options, ThreadPool& pool) {
  CheckLabTokens(model->spec, tokens, 1, std::min(kMaxTraceTokens, model->spec.n_ctx_train));
  CheckLayer(model->spec, options.layer);
  const DecoderOptions decoder_options{tokens.size(), tokens.size()};
  KvCache cache(Decoder::PlanCache(model->spec, decoder_options), options.kv_format, tokens.size());
  Decoder decoder(*model, decoder_options, pool);
  const auto run = [&](size_t begin, size_t end, LayerObserver* observer) {
    DecoderChunk chunk;
    chunk.tokens = tokens.subspan(begin, end - begin);
    chunk.pos0 = begin;
    chunk.observer = observer;
    decoder.Start(chunk, cache);
    while (decoder.Step()) {
    }
  };
  const size_t begin = options.last_only ? tokens.size() - 1 : 0;
  if (begin > 0) run(0, begin, nullptr);
  Tracer tracer(options.layer);
  const Clock::time_point start = Clock::now();
  do {
    run(begin, tokens.size(), &tracer);
    tracer.EndPass();
  } while (MsSince(start) < options.budget_ms);
  for (TracedTensor& tensor : tracer.trace.tensors) {
    tensor.ms /= static_cast<double>(tracer.trace.n_passes);
  }
  return std::move(tracer.trace);
}

}  // namespace headlight
