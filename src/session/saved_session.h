// The bytes of a saved session, and the reading of bytes that may be anything: another model's,
// damaged or hostile. What is read is checked as a whole before a session is changed.
// Little-endian:
//
//   "HLSN"  u32 version  u64 hash of the model  u8 type of keys  u8 of values  u8 of activations
//   u8 zero  u32 n_layers  u32 n_tokens  u32 n_rows  u64 rows_bytes
//   u32 tokens[n_tokens]: the history; n_rows of them have rows
//   rows of each layer as KvLayer::RowSpans lists them
//   u64 ContentHash of all of the above
#ifndef HEADLIGHT_SESSION_SAVED_SESSION_H_
#define HEADLIGHT_SESSION_SAVED_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/matmul.h"
#include "kv/kv_cache.h"

namespace headlight {

inline constexpr uint32_t kSavedSessionVersion = 1;

class SavedSink {
 public:
  virtual ~SavedSink() = default;
  virtual void Write(std::span<const uint8_t> bytes) = 0;
};

class SavedSource {
 public:
  virtual ~SavedSource() = default;
  virtual uint64_t n_bytes() const = 0;
  // [offset, offset + out.size()) is within n_bytes(); out is empty for a session without tokens.
  virtual void Read(uint64_t offset, std::span<uint8_t> out) = 0;
};

// What a session must agree with to take another's rows.
struct SavedFit {
  uint64_t model_hash = 0;
  KvCacheFormat format;
  ActivationType activations = ActivationType::kInt8;
  size_t vocab_size = 0;
};

uint64_t SavedBytes(size_t n_tokens, KvCache& cache);
// cache: its live rows are saved. Not const, because what dead rows of the last int8 group hold is
// cleared, so that nothing of an earlier conversation goes out.
void WriteSaved(const SavedFit& fit, std::span<const uint32_t> tokens, KvCache& cache,
                SavedSink& sink);

// Reads the rows into `cache`, and returns the history. Throws Error(kUnsupported) for another
// version, kBadOption for another model, cache type, activations or another choice of rows
// (details: "differs", "saved", "loaded"), kContextFull, or kIntegrity for bytes that are no
// session or a damaged one; the cache is then as it was.
std::vector<uint32_t> ReadSaved(const SavedFit& fit, SavedSource& source, KvCache& cache);

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_SAVED_SESSION_H_
