// libFuzzer target: any bytes as a saved session, with a checksum that agrees unless the last byte
// is odd. They are refused by a typed error that changes nothing, or the session goes on: a few
// tokens are then computed from whatever the rows hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/content_hash.h"
#include "base/error.h"
#include "oracle/test_model.h"
#include "session/session.h"

namespace {

using headlight::CacheType;

struct BytesSource : headlight::SavedSource {
  explicit BytesSource(std::span<const uint8_t> b) : bytes(b) {}
  uint64_t n_bytes() const override { return bytes.size(); }
  void Read(uint64_t offset, std::span<uint8_t> out) override {
    if (offset > bytes.size() || out.size() > bytes.size() - offset) std::abort();
    if (out.empty()) return;  // memcpy takes no null, not even for no bytes
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  }
  std::span<const uint8_t> bytes;
};

// One for each cache format, made once: a run leaves them empty.
struct Sessions {
  Sessions() {
    headlight::ModelSpec spec = headlight::SmallSpec({4, 2, 24, 32}, 64, 96, 2);
    test = headlight::MakeTestModel(spec, headlight::TensorType::kQ8_0, 21);
    for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
      headlight::SessionOptions options;
      options.n_ctx = 32;
      options.kv_format = {type, type};
      all.push_back(std::make_unique<headlight::Session>(test.model, options, pool));
    }
  }
  headlight::ThreadPool pool{1};
  headlight::TestModel test;
  std::vector<std::unique_ptr<headlight::Session>> all;
};

void GoOn(headlight::Session& session) {
  std::vector<uint32_t> tokens = session.history();
  if (tokens.size() > session.plan().n_ctx) return;
  tokens.resize(std::max<size_t>(tokens.size(), 1), 3);
  headlight::GenerateOptions options;
  options.max_tokens = 2;
  session.Begin(tokens, options);
  while (!session.Advance(1e9).done) continue;
}

void Reseal(std::vector<uint8_t>& bytes) {
  constexpr size_t kHashBytes = sizeof(uint64_t);
  if (bytes.size() < kHashBytes) return;
  headlight::ContentHash hash;
  hash.Update(std::span(bytes).first(bytes.size() - kHashBytes));
  const uint64_t digest = hash.Digest();
  std::memcpy(bytes.data() + bytes.size() - kHashBytes, &digest, kHashBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  static Sessions sessions;
  if (n_bytes == 0) return 0;
  std::vector<uint8_t> bytes(data, data + n_bytes - 1);
  const uint8_t choice = data[n_bytes - 1];
  if (choice % 2 == 0) Reseal(bytes);
  headlight::Session& session = *sessions.all[choice / 2 % sessions.all.size()];
  session.Truncate(0);
  try {
    BytesSource source(bytes);
    session.Restore(source);
  } catch (const headlight::Error&) {
    if (!session.history().empty()) std::abort();
    return 0;
  }
  try {
    GoOn(session);
  } catch (const headlight::Error& error) {
    // Rows of infinities overflow: told, not computed with.
    if (error.code() != headlight::ErrorCode::kInternal) std::abort();
  }
  return 0;
}
