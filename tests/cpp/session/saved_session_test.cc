// Forked, saved and restored sessions go on as the one they come from, bit for bit; bytes that are
// no session of this model are refused by name and change nothing.
#include "session/saved_session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "oracle/test_model.h"
#include "session/run_session.h"
#include "session/session.h"
#include "support.h"

namespace headlight {
namespace {

using testing::Detail;
using testing::ErrorOf;
using Tokens = std::vector<uint32_t>;
using Bytes = std::vector<uint8_t>;

struct BytesSink : SavedSink {
  void Write(std::span<const uint8_t> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  Bytes bytes;
};

struct BytesSource : SavedSource {
  explicit BytesSource(Bytes b) : bytes(std::move(b)) {}
  uint64_t n_bytes() const override { return bytes.size(); }
  void Read(uint64_t offset, std::span<uint8_t> out) override {
    REQUIRE(offset + out.size() <= bytes.size());
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  Bytes bytes;
};

struct Format {
  CacheType k, v;
};
const Format kFormats[] = {{CacheType::kF32, CacheType::kF32},
                           {CacheType::kF16, CacheType::kF16},
                           {CacheType::kInt8, CacheType::kInt8},
                           {CacheType::kInt8, CacheType::kF16}};

struct Fixture {
  explicit Fixture(const Format& format)
      : test(SmallSessionModel()), options(SmallSessionOptions()) {
    options.kv_format = {format.k, format.v};
  }
  Session NewSession() { return Session(test.model, options, pool); }

  TestModel test;
  SessionOptions options;
  ThreadPool pool{1};
};

std::vector<SampledToken> Generate(Session& session, const Tokens& prompt, size_t n) {
  session.Begin(prompt, Greedy(n));
  std::vector<SampledToken> tokens;
  Finish(session, 1e9, tokens);
  return tokens;
}

Bytes Saved(const Session& session) {
  BytesSink sink;
  session.Save(sink);
  CHECK(sink.bytes.size() == session.SavedBytes());
  return sink.bytes;
}

void Restore(Session& session, Bytes bytes) {
  BytesSource source(std::move(bytes));
  session.Restore(source);
}

// The bytes with a checksum that agrees: what a person who wants to do harm would send.
Bytes Resealed(Bytes bytes) {
  ContentHash hash;
  hash.Update(std::span(bytes).first(bytes.size() - 8));
  const uint64_t digest = hash.Digest();
  std::memcpy(bytes.data() + bytes.size() - 8, &digest, 8);
  return bytes;
}

template <typename T>
Bytes With(Bytes bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return Resealed(std::move(bytes));
}

TEST_CASE("content_hash: the pieces that bytes come in do not matter, each byte does") {
  const Bytes bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  ContentHash whole;
  whole.Update(bytes);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    ContentHash hash;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      hash.Update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    CHECK(hash.Digest() == whole.Digest());
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    Bytes other = bytes;
    other[i] ^= 1;
    ContentHash hash;
    hash.Update(other);
    CHECK(hash.Digest() != whole.Digest());
  }
  ContentHash zeros, fewer;
  zeros.Update(Bytes(16, 0));
  fewer.Update(Bytes(15, 0));
  CHECK(zeros.Digest() != fewer.Digest());
}

TEST_CASE(
    "session: forks and restored sessions go on as the first, bit for bit, and apart from it") {
  for (const Format& format : kFormats) {
    Fixture f(format);
    for (const size_t n_prompt : {1u, 3u, 8u, 13u, 30u}) {
      CAPTURE(n_prompt);
      const Tokens prompt = RandomTokens(n_prompt, 97, n_prompt);
      Session first = f.NewSession();
      Generate(first, prompt, 4);
      const Tokens so_far = first.history();

      Session alone = f.NewSession();
      const std::vector<SampledToken> expected = Generate(alone, so_far, 10);

      Session fork = f.NewSession(), restored = f.NewSession();
      Generate(fork, RandomTokens(40, 97, 99), 3);  // what it held before is gone
      fork.CopyFrom(first);
      Restore(restored, Saved(first));
      CHECK(fork.history() == so_far);
      CHECK(restored.history() == so_far);
      // Something else in the first must not reach the others.
      Generate(first, RandomTokens(20, 97, 5), 5);
      for (Session* session : {&fork, &restored}) {
        CHECK(SameTokens(Generate(*session, so_far, 10), expected));
        CHECK(session->stats().n_prompt_reused == so_far.size() - 1);
      }
    }
  }
}

TEST_CASE("session: an empty session and one whose run was stopped in the prompt can be saved") {
  Fixture f(kFormats[0]);
  Session empty = f.NewSession(), target = f.NewSession();
  Generate(target, RandomTokens(9, 97, 1), 2);
  Restore(target, Saved(empty));
  CHECK(target.history().empty());
  const Tokens prompt = RandomTokens(30, 97, 2);
  empty.Begin(prompt, Greedy(5));
  for (int i = 0; i < 6; ++i) empty.Advance(0.0);
  empty.Cancel();
  Restore(target, Saved(empty));
  CHECK(target.history() == empty.history());
  CHECK(target.history().size() < prompt.size());
  CHECK(SameTokens(Generate(target, prompt, 6), GenerateAlone(f.test, prompt, 6)));
}

TEST_CASE("session: saved bytes depend on the conversation alone") {
  for (const Format& format : kFormats) {
    Fixture f(format);
    const Tokens prompt = RandomTokens(14, 97, 3);
    Session fresh = f.NewSession(), used = f.NewSession();
    Generate(used, RandomTokens(50, 97, 8), 5);
    Generate(fresh, prompt, 3);
    Generate(used, prompt, 3);
    CHECK(Saved(fresh) == Saved(used));
  }
}

TEST_CASE("session: what was saved elsewhere is refused by what differs, and nothing changes") {
  Fixture f({CacheType::kF32, CacheType::kF16});
  Session session = f.NewSession();
  Generate(session, RandomTokens(10, 97, 1), 3);
  const Bytes good = Saved(session);
  struct Case {
    const char* differs;
    ErrorCode code;
    Bytes bytes;
  };
  const Case cases[] = {
      {"version", ErrorCode::kUnsupported, With(good, 4, uint32_t{2})},
      {"model", ErrorCode::kBadOption, With(good, 8, uint64_t{1})},
      {"cache type", ErrorCode::kBadOption, With(good, 16, uint8_t{2})},
      {"cache type", ErrorCode::kBadOption, With(good, 17, uint8_t{200})},
      {"activations", ErrorCode::kBadOption, With(good, 18, uint8_t{1})},
  };
  for (const Case& c : cases) {
    CAPTURE(c.differs);
    const Tokens history = session.history();
    const Error error = ErrorOf([&] { Restore(session, c.bytes); });
    CHECK(error.code() == c.code);
    CHECK(Detail(error, "differs") == c.differs);
    CHECK(session.history() == history);
    CHECK(Saved(session) == good);
  }
  SessionOptions small = f.options;
  small.n_ctx = 11;
  Session less(f.test.model, small, f.pool);
  const Error full = ErrorOf([&] { Restore(less, good); });
  CHECK(full.code() == ErrorCode::kContextFull);
  CHECK(Detail(full, "needed_tokens") == "12");
  CHECK(Detail(full, "n_ctx") == "11");
}

TEST_CASE("session: damaged and hostile bytes are an integrity error, whatever they claim") {
  Fixture f(kFormats[2]);
  Session session = f.NewSession();
  Generate(session, RandomTokens(10, 97, 1), 3);
  const Bytes good = Saved(session);
  const auto refused = [&](Bytes bytes) {
    const Error error = ErrorOf([&] { Restore(session, std::move(bytes)); });
    CHECK(error.code() == ErrorCode::kIntegrity);
    CHECK(Saved(session) == good);
  };
  for (size_t n = 0; n < good.size(); n += n < 120 ? 1 : 997) {
    refused(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)));
  }
  for (size_t at = 0; at < good.size(); at += at < 4 || at >= 8 ? 501 : 4) {
    Bytes bytes = good;
    bytes[at] ^= 0x10;
    if (at < 4 || at >= 8) refused(std::move(bytes));
  }
  Bytes longer = good;
  longer.insert(longer.end() - 8, 3, 0);
  refused(Resealed(longer));
  refused(With(good, 19, uint8_t{1}));
  for (const uint32_t n : {0u, 2u, 0xFFFFFFFFu}) refused(With(good, 20, n));        // layers
  for (const uint32_t n : {0u, 12u, 14u, 0xFFFFFFFFu}) refused(With(good, 24, n));  // tokens
  for (const uint32_t n : {0u, 11u, 13u, 0xFFFFFFFFu}) refused(With(good, 28, n));  // rows
  for (const uint64_t n : {uint64_t{0}, ~uint64_t{0}}) refused(With(good, 32, n));  // bytes
  refused(With(good, 40, uint32_t{97}));                                            // a token
}

// Found by tests/fuzz/session_fuzz.cc: kernels that turn numbers into codes count on finite ones.
TEST_CASE("session: saved rows that hold infinities, NaN or huge numbers are refused") {
  for (const Format& format : kFormats) {
    Fixture f(format);
    Session session = f.NewSession();
    Generate(session, RandomTokens(8, 97, 1), 2);
    const Bytes good = Saved(session);
    const size_t rows = 40 + 4 * session.history().size();
    const bool has_codes = format.k == CacheType::kInt8;
    // The scales of int8 keys lie behind the codes of both heads: 12 rows of 32 bytes each.
    const size_t at = has_codes ? rows + 2 * 12 * 32 : rows;
    for (const uint32_t bits :
         {0x7F800000u, 0xFFC00000u, 0x7F000000u, 0x7C007C00u, 0xFE00FE00u, 0xBC00BC00u}) {
      // A scale is never negative.
      const bool is_half_bad = (bits & 0x7C00u) == 0x7C00u || (has_codes && bits == 0xBC00BC00u);
      const bool is_bad = format.k == CacheType::kF32
                              ? bits >> 16 == 0x7F00u || (bits & 0x7F800000u) == 0x7F800000u
                              : is_half_bad;
      if (!is_bad) continue;
      const Error error = ErrorOf([&] { Restore(session, With(good, at, bits)); });
      CHECK(error.code() == ErrorCode::kIntegrity);
      CHECK(Saved(session) == good);
    }
  }
}

}  // namespace
}  // namespace headlight
