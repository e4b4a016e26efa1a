#include "session/saved_session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/content_hash.h"
#include "base/dtype.h"
#include "base/error.h"

namespace headlight {
namespace {

constexpr uint8_t kMagic[] = {'H', 'L', 'S', 'N'};
constexpr uint64_t kHeaderBytes = 40;
constexpr uint64_t kHashBytes = sizeof(uint64_t);
// Read at once while the hash is checked.
constexpr size_t kPieceBytes = 1u << 16;

struct Header {
  uint32_t version = 0;
  uint64_t model_hash = 0;
  uint8_t k = 0, v = 0, activations = 0, zero = 0;
  uint32_t n_layers = 0, n_tokens = 0, n_rows = 0;
  uint64_t rows_bytes = 0;
};

// Calls field(pointer, n_bytes) for each field in order.
template <typename H, typename F>
void ForFields(H& header, const F& field) {
  field(&header.version, sizeof(header.version));
  field(&header.model_hash, sizeof(header.model_hash));
  for (auto* byte : {&header.k, &header.v, &header.activations, &header.zero}) field(byte, 1);
  for (auto* n : {&header.n_layers, &header.n_tokens, &header.n_rows}) field(n, sizeof(*n));
  field(&header.rows_bytes, sizeof(header.rows_bytes));
}

uint64_t RowsBytes(KvCache& cache, size_t n_rows) {
  uint64_t n_bytes = 0;
  for (size_t i = 0; i < cache.n_layers(); ++i) {
    for (const auto& span : cache.layer(i).RowSpans(n_rows)) n_bytes += span.bytes.size();
  }
  return n_bytes;
}

bool HasRings(const KvCache& cache) {
  for (size_t i = 0; i < cache.n_layers(); ++i) {
    if (cache.layer(i).placement().is_ring()) return true;
  }
  return false;
}

std::span<const uint8_t> AsBytes(std::span<const uint32_t> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

class HashingSink {
 public:
  explicit HashingSink(SavedSink& sink) : sink_(sink) {}
  void Write(std::span<const uint8_t> bytes) {
    hash_.Update(bytes);
    sink_.Write(bytes);
  }
  uint64_t Digest() const { return hash_.Digest(); }

 private:
  SavedSink& sink_;
  ContentHash hash_;
};

[[noreturn]] void ThrowDamaged(const std::string& what) {
  throw Error(ErrorCode::kIntegrity,
              "these bytes are no saved session or a damaged one: " + what +
                  "; take a copy that is whole, or begin the conversation anew",
              {{"fault", what}});
}

[[noreturn]] void ThrowDiffers(ErrorCode code, const std::string& what, const std::string& saved,
                               const std::string& loaded) {
  throw Error(code,
              "the session was saved with another " + what + ": " + saved + ", here it is " +
                  loaded + "; load as it was then, or begin the conversation anew",
              {{"differs", what}, {"saved", saved}, {"loaded", loaded}});
}

std::string Hex(uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15];
  return text;
}

std::string TypeName(uint8_t type) {
  for (const CacheType known : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    if (type == static_cast<uint8_t>(known)) return CacheTypeName(known);
  }
  return "type " + std::to_string(type);
}

std::string ActivationsName(uint8_t type) {
  return type == static_cast<uint8_t>(ActivationType::kF32) ? "f32" : "int8";
}

Header ReadHeader(SavedSource& source) {
  uint8_t bytes[kHeaderBytes];
  if (source.n_bytes() < kHeaderBytes + kHashBytes) {
    ThrowDamaged(std::to_string(source.n_bytes()) + " bytes are too few");
  }
  source.Read(0, bytes);
  if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) ThrowDamaged("it does not begin as one");
  Header header;
  const uint8_t* at = bytes + sizeof(kMagic);
  ForFields(header, [&](auto* field, size_t n) {
    std::memcpy(field, at, n);
    at += n;
  });
  return header;
}

void CheckHash(SavedSource& source) {
  const uint64_t n_hashed = source.n_bytes() - kHashBytes;
  std::vector<uint8_t> piece(static_cast<size_t>(std::min<uint64_t>(kPieceBytes, n_hashed)));
  ContentHash hash;
  for (uint64_t at = 0; at < n_hashed; at += piece.size()) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(piece.size(), n_hashed - at));
    source.Read(at, std::span(piece).first(n));
    hash.Update(std::span(piece).first(n));
  }
  uint8_t expected[kHashBytes];
  source.Read(n_hashed, expected);
  const uint64_t digest = hash.Digest();
  if (std::memcmp(expected, &digest, kHashBytes) != 0) ThrowDamaged("its checksum does not agree");
}

void CheckVersion(const Header& header) {
  if (header.version == kSavedSessionVersion) return;
  ThrowDiffers(ErrorCode::kUnsupported, "version", std::to_string(header.version),
               std::to_string(kSavedSessionVersion));
}

void CheckFit(const Header& header, const SavedFit& fit, const KvCache& cache) {
  if (header.model_hash != fit.model_hash) {
    ThrowDiffers(ErrorCode::kBadOption, "model", Hex(header.model_hash), Hex(fit.model_hash));
  }
  const std::pair<uint8_t, CacheType> types[] = {{header.k, fit.format.k},
                                                 {header.v, fit.format.v}};
  for (const auto& [saved, loaded] : types) {
    if (saved == static_cast<uint8_t>(loaded)) continue;
    ThrowDiffers(ErrorCode::kBadOption, "cache type", TypeName(saved), CacheTypeName(loaded));
  }
  if (header.activations != static_cast<uint8_t>(fit.activations)) {
    ThrowDiffers(ErrorCode::kBadOption, "activations", ActivationsName(header.activations),
                 ActivationsName(static_cast<uint8_t>(fit.activations)));
  }
  if (header.zero != 0) ThrowDamaged("a byte that is always 0 is not");
  if (header.n_layers != cache.n_layers()) ThrowDamaged("it has another number of layers");
  // No row at all: a session that went back further than a ring holds.
  const bool has_rows = header.n_rows != 0;
  if (header.n_rows > header.n_tokens || (has_rows && header.n_tokens - header.n_rows > 1)) {
    ThrowDamaged(std::to_string(header.n_rows) + " rows do not belong to " +
                 std::to_string(header.n_tokens) + " tokens");
  }
  if (header.n_rows > cache.n_ctx()) {
    throw Error(ErrorCode::kContextFull,
                "the saved session has " + std::to_string(header.n_rows) +
                    " tokens, the context holds " + std::to_string(cache.n_ctx()) +
                    "; load with a larger n_ctx",
                {{"needed_tokens", std::to_string(header.n_rows)},
                 {"n_ctx", std::to_string(cache.n_ctx())}});
  }
}

std::vector<uint32_t> ReadTokens(const Header& header, size_t vocab_size, SavedSource& source) {
  std::vector<uint32_t> tokens(header.n_tokens);
  source.Read(kHeaderBytes,
              {reinterpret_cast<uint8_t*>(tokens.data()), tokens.size() * sizeof(uint32_t)});
  for (const uint32_t token : tokens) {
    if (token < vocab_size) continue;
    ThrowDamaged("token " + std::to_string(token) + " is not in the vocabulary of " +
                 std::to_string(vocab_size));
  }
  return tokens;
}

// Far beyond any key or value, and far below where products of one overflow: kernels count on
// finite numbers.
constexpr float kMaxRowValue = 1e12f;

bool AreUsable(const KvLayer::RowSpan& span, std::span<const uint8_t> bytes) {
  const size_t float_bytes = span.float_bytes;
  for (size_t at = 0; float_bytes != 0 && at + float_bytes <= bytes.size(); at += float_bytes) {
    float value;
    if (float_bytes == sizeof(uint16_t)) {
      uint16_t half;
      std::memcpy(&half, bytes.data() + at, sizeof(half));
      value = F32FromF16(half);
    } else {
      std::memcpy(&value, bytes.data() + at, sizeof(value));
    }
    if (!(std::fabs(value) <= kMaxRowValue) || (span.is_scale && value < 0.0f)) return false;
  }
  return true;
}

void CheckRows(SavedSource& source, uint64_t at, size_t n_rows, KvCache& cache) {
  std::vector<uint8_t> piece(kPieceBytes);
  for (size_t i = 0; i < cache.n_layers(); ++i) {
    for (const auto& span : cache.layer(i).RowSpans(n_rows)) {
      for (size_t done = 0; done < span.bytes.size(); done += kPieceBytes) {
        const size_t n = std::min(kPieceBytes, span.bytes.size() - done);
        source.Read(at + done, std::span(piece).first(n));
        if (AreUsable(span, std::span(piece).first(n))) continue;
        ThrowDamaged("a row of layer " + std::to_string(i) + " holds numbers that no model writes");
      }
      at += span.bytes.size();
    }
  }
}

}  // namespace

uint64_t SavedBytes(size_t n_tokens, KvCache& cache) {
  return kHeaderBytes + n_tokens * sizeof(uint32_t) + RowsBytes(cache, cache.n_rows()) + kHashBytes;
}

void WriteSaved(const SavedFit& fit, std::span<const uint32_t> tokens, KvCache& cache,
                SavedSink& sink) {
  Header header;
  header.version = kSavedSessionVersion;
  header.model_hash = fit.model_hash;
  header.k = static_cast<uint8_t>(fit.format.k);
  header.v = static_cast<uint8_t>(fit.format.v);
  header.activations = static_cast<uint8_t>(fit.activations);
  header.n_layers = static_cast<uint32_t>(cache.n_layers());
  header.n_tokens = static_cast<uint32_t>(tokens.size());
  header.n_rows = static_cast<uint32_t>(cache.n_rows());
  header.rows_bytes = RowsBytes(cache, cache.n_rows());
  HashingSink hashing(sink);
  hashing.Write(kMagic);
  ForFields(header, [&](const auto* field, size_t n) {
    hashing.Write({reinterpret_cast<const uint8_t*>(field), n});
  });
  hashing.Write(AsBytes(tokens));
  for (size_t i = 0; i < cache.n_layers(); ++i) {
    cache.layer(i).ClearGroupRest(cache.n_rows());
    for (const auto& span : cache.layer(i).RowSpans(cache.n_rows())) hashing.Write(span.bytes);
  }
  const uint64_t digest = hashing.Digest();
  sink.Write({reinterpret_cast<const uint8_t*>(&digest), sizeof(digest)});
}

std::vector<uint32_t> ReadSaved(const SavedFit& fit, SavedSource& source, KvCache& cache) {
  const Header header = ReadHeader(source);
  CheckVersion(header);
  CheckHash(source);
  CheckFit(header, fit, cache);
  const uint64_t rows_bytes = RowsBytes(cache, header.n_rows);
  const uint64_t tokens_bytes = uint64_t{header.n_tokens} * sizeof(uint32_t);
  const uint64_t expected = kHeaderBytes + tokens_bytes + rows_bytes + kHashBytes;
  // With rings: a file that is whole and has other rows.
  const uint64_t own = kHeaderBytes + tokens_bytes + header.rows_bytes + kHashBytes;
  if (HasRings(cache) && header.rows_bytes != rows_bytes && source.n_bytes() == own) {
    ThrowDiffers(ErrorCode::kBadOption, "context, prefill chunk or eviction",
                 std::to_string(header.rows_bytes) + " bytes of rows", std::to_string(rows_bytes));
  }
  if (header.rows_bytes != rows_bytes || source.n_bytes() != expected) {
    ThrowDamaged(std::to_string(source.n_bytes()) + " bytes where " + std::to_string(expected) +
                 " are expected");
  }
  std::vector<uint32_t> tokens = ReadTokens(header, fit.vocab_size, source);
  CheckRows(source, kHeaderBytes + tokens_bytes, header.n_rows, cache);
  uint64_t at = kHeaderBytes + tokens_bytes;
  for (size_t i = 0; i < cache.n_layers(); ++i) {
    for (const auto& span : cache.layer(i).RowSpans(header.n_rows)) {
      source.Read(at, span.bytes);
      at += span.bytes.size();
    }
  }
  cache.SetRestoredRows(header.n_rows);
  return tokens;
}

}  // namespace headlight
