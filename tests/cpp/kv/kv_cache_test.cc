#include "kv/kv_cache.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "simd/f16-inl.h"

namespace headlight {
namespace {

constexpr KvCacheFormat kF32Cache{CacheType::kF32, CacheType::kF32};
constexpr KvCacheFormat kF16Cache{CacheType::kF16, CacheType::kF16};
constexpr KvCacheFormat kInt8Cache{CacheType::kInt8, CacheType::kInt8};

// Distinct for every (head, row, column), exact in f16.
float Mark(size_t head, size_t row, size_t i) {
  return static_cast<float>(head * 512 + row * 32 + i % 32) - 1000.0f;
}

TEST_CASE("f16: vector reading equals the scalar for every finite binary16") {
  size_t n_wrong = 0;
  for (uint32_t h = 0; h < 0x10000; h += 4) {
    if ((h & 0x7C00u) == 0x7C00u) continue;
    HWY_ALIGN uint16_t halves[4];
    HWY_ALIGN float floats[4];
    for (uint32_t i = 0; i < 4; ++i) halves[i] = static_cast<uint16_t>(h + i);
    hn::Store(LoadF16x4(halves, F16Constants()), F32x4(), floats);
    for (size_t i = 0; i < 4; ++i) {
      n_wrong +=
          std::bit_cast<uint32_t>(floats[i]) != std::bit_cast<uint32_t>(F32FromF16(halves[i]));
    }
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("f16: vector rounding equals the scalar bit for bit") {
  // Every binary16, the midpoints between neighbours and the floats next to both; then a stride
  // through all of binary32.
  std::vector<uint32_t> inputs;
  for (uint32_t h = 0; h < 0x8000; ++h) {
    const uint32_t exact = std::bit_cast<uint32_t>(F32FromF16(static_cast<uint16_t>(h)));
    const uint32_t next = std::bit_cast<uint32_t>(F32FromF16(static_cast<uint16_t>(h + 1)));
    const uint32_t middle = exact + (next - exact) / 2;
    for (const uint32_t bits : {exact - 1, exact, exact + 1, middle - 1, middle, middle + 1}) {
      inputs.push_back(bits);
      inputs.push_back(bits ^ 0x80000000u);
    }
  }
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 10007) {
    inputs.push_back(static_cast<uint32_t>(bits));
  }
  while (inputs.size() % 4 != 0) inputs.push_back(0);
  size_t n_wrong = 0;
  for (size_t i = 0; i < inputs.size(); i += 4) {
    HWY_ALIGN float floats[4];
    HWY_ALIGN uint16_t halves[4];
    for (size_t j = 0; j < 4; ++j) floats[j] = std::bit_cast<float>(inputs[i + j]);
    hn::Store(F16FromF32Vector(hn::Load(F32x4(), floats)), U16x4(), halves);
    for (size_t j = 0; j < 4; ++j) n_wrong += halves[j] != F16FromF32(floats[j]);
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("kv_cache: rows come back as they were written, for heads of every width") {
  for (const size_t d_qk : {1u, 3u, 8u, 24u, 48u, 80u}) {
    for (const size_t d_v : {1u, 5u, 8u, 64u}) {
      for (const KvCacheFormat& format :
           {kF32Cache, kF16Cache, KvCacheFormat{CacheType::kF16, CacheType::kF32}}) {
        const HeadLayout layout{4, 2, d_qk, d_v};
        KvLayer kv(layout, format, 7);
        for (size_t row = 0; row < 7; ++row) {
          std::vector<float> k;
          std::vector<float> v;
          for (size_t head = 0; head < 2; ++head) {
            for (size_t i = 0; i < d_qk; ++i) k.push_back(Mark(head, row, i));
            for (size_t i = 0; i < d_v; ++i) v.push_back(-Mark(head, row, i));
          }
          kv.WriteRow(row, k.data(), v.data());
        }
        for (size_t head = 0; head < 2; ++head) {
          const KvHeadView view = kv.head(head);
          REQUIRE(view.k_stride == KvRowStride(format.k, d_qk));
          REQUIRE(view.v_stride == KvRowStride(format.v, d_v));
          REQUIRE(reinterpret_cast<uintptr_t>(view.k) % 16 == 0);
          REQUIRE(reinterpret_cast<uintptr_t>(view.v) % 16 == 0);
          const auto element = [](CacheType type, const void* p, size_t i) {
            return type == CacheType::kF16 ? F32FromF16(static_cast<const uint16_t*>(p)[i])
                                           : static_cast<const float*>(p)[i];
          };
          for (size_t row = 0; row < 7; ++row) {
            for (size_t i = 0; i < view.k_stride; ++i) {
              const float expected = i < d_qk ? Mark(head, row, i) : 0.0f;  // padding is zero
              REQUIRE(element(format.k, view.k, row * view.k_stride + i) == expected);
            }
            for (size_t i = 0; i < view.v_stride; ++i) {
              const float expected = i < d_v ? -Mark(head, row, i) : 0.0f;
              REQUIRE(element(format.v, view.v, row * view.v_stride + i) == expected);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("kv_cache: f16 rounds to nearest even and saturates; NaN stays NaN") {
  const HeadLayout layout{1, 1, 6, 1};
  KvLayer kv(layout, kF16Cache, 1);
  const float infinity = std::numeric_limits<float>::infinity();
  const float k[6] = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 65520.0f,
                      -infinity,       0x1p-25f * 1.5f,     1e6f};
  const float v[1] = {std::numeric_limits<float>::quiet_NaN()};
  kv.WriteRow(0, k, v);
  const uint16_t* row = static_cast<const uint16_t*>(kv.head(0).k);
  CHECK(F32FromF16(row[0]) == 1.0f);
  CHECK(F32FromF16(row[1]) == 1.0f + 0x1p-9f);
  CHECK(F32FromF16(row[2]) == 65504.0f);
  CHECK(F32FromF16(row[3]) == -65504.0f);
  CHECK(F32FromF16(row[4]) == 0x1p-24f);
  CHECK(F32FromF16(row[5]) == 65504.0f);
  CHECK(std::isnan(F32FromF16(static_cast<const uint16_t*>(kv.head(0).v)[0])));
}

TEST_CASE("kv_cache: bytes are the head layout's, exactly") {
  struct Row {
    HeadLayout layout;
    KvCacheFormat format;
    size_t bytes_per_token;
  };
  // MHA, GQA-8 and MQA of 64 heads of 128 at 2 bytes: 32 KiB, 4 KiB and 512 B a token; d_qk 48 with
  // d_v 64, two KV heads: 448 B in f16 and 896 B in f32, against 512 B with d_qk 64; narrow heads
  // pay for whole vectors of 16 bytes.
  const Row rows[] = {
      {{64, 64, 128, 128}, kF16Cache, 32768},
      {{64, 8, 128, 128}, kF16Cache, 4096},
      {{64, 1, 128, 128}, kF16Cache, 512},
      {{16, 2, 48, 64}, kF16Cache, 448},
      {{16, 2, 48, 64}, kF32Cache, 896},
      {{16, 2, 64, 64}, kF16Cache, 512},
      {{8, 4, 8, 8}, kF32Cache, 256},
      {{2, 1, 3, 1}, kF32Cache, 32},
      {{2, 1, 3, 9}, kF16Cache, 16 + 32},
      {{2, 1, 8, 8}, {CacheType::kF16, CacheType::kF32}, 16 + 32},
      // int8: 48 + 64 codes and a scale of 2 bytes for each of the two, two heads.
      {{16, 2, 48, 64}, kInt8Cache, 2 * (48 + 2 + 64 + 2)},
      {{2, 1, 3, 17}, kInt8Cache, 16 + 2 + 32 + 2},
      {{16, 2, 48, 64}, {CacheType::kInt8, CacheType::kF16}, 2 * (48 + 2 + 128)},
      {{16, 2, 48, 64}, {CacheType::kF32, CacheType::kInt8}, 2 * (192 + 64 + 2)},
  };
  for (const Row& row : rows) {
    CHECK(KvLayer::BytesPerToken(row.layout, row.format) == row.bytes_per_token);
    CHECK(KvLayer::Bytes(row.layout, row.format, 100) == 100 * row.bytes_per_token);
    const KvCache cache({row.layout, row.layout, row.layout}, row.format, 100);
    CHECK(cache.bytes() == 300 * row.bytes_per_token);
    CHECK(KvCache::Bytes({row.layout, row.layout, row.layout}, row.format, 100) == cache.bytes());
  }
  // Groups of four rows are whole: 101 tokens take the room of 104.
  CHECK(KvLayer::Bytes({16, 2, 48, 64}, kInt8Cache, 101) == 104 * 232);
  CHECK(KvLayer::Bytes({16, 2, 48, 64}, {CacheType::kInt8, CacheType::kF16}, 101) ==
        104 * 100 + 101 * 256);
  // 80 layers of GQA-8 at 8192 tokens: 320 KiB a token, 2.5 GiB.
  const std::vector<HeadLayout> layers(80, HeadLayout{64, 8, 128, 128});
  CHECK(KvCache::Bytes(layers, kF16Cache, 1) == 320 * 1024);
  CHECK(KvCache::Bytes(layers, kF16Cache, 8192) == size_t{2560} * 1024 * 1024);
}

TEST_CASE("kv_cache: layers may differ, and rolling back keeps what is below") {
  KvCache cache({HeadLayout{4, 2, 8, 16}, HeadLayout{4, 1, 24, 8}}, kF32Cache, 10);
  CHECK(cache.n_ctx() == 10);
  CHECK(cache.n_rows() == 0);
  const std::vector<float> ones(64, 1.0f);
  const std::vector<float> twos(64, 2.0f);
  cache.layer(1).WriteRow(0, ones.data(), ones.data());
  cache.layer(1).WriteRow(1, twos.data(), twos.data());
  cache.SetRows(2);
  cache.SetRows(1);
  CHECK(cache.n_rows() == 1);
  CHECK(static_cast<const float*>(cache.layer(1).head(0).k)[23] == 1.0f);
  CHECK(cache.layer(0).layout().d_v == 16);
}

TEST_CASE("kv_cache: a layout that cannot be is a BadOption that names the field") {
  const auto field = [](const HeadLayout& layout) -> std::string {
    try {
      const KvLayer layer(layout, kF32Cache, 4);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadOption ? error.details()[0].second : "another error";
    }
    return "no error";
  };
  CHECK(field({8, 3, 4, 4}) == "n_kv_heads");
  CHECK(field({8, 0, 4, 4}) == "n_kv_heads");
  CHECK(field({0, 1, 4, 4}) == "n_q_heads");
  CHECK(field({8, 2, 0, 4}) == "d_qk");
  CHECK(field({8, 2, 4, 0}) == "d_v");
  CHECK(field({8, 2, 4, 4}) == "no error");
}

TEST_CASE(
    "kv_cache: a context beyond the address space fails to allocate instead of wrapping around") {
  constexpr size_t kHuge = std::numeric_limits<size_t>::max() / 16;
  const HeadLayout layout{8, 8, 64, 64};
  CHECK(KvLayer::Bytes(layout, kF32Cache, kHuge) == std::numeric_limits<size_t>::max());
  CHECK(KvCache::Bytes({layout, layout}, kF32Cache, kHuge) == std::numeric_limits<size_t>::max());
  CHECK(KvLayer::Bytes(layout, kInt8Cache, std::numeric_limits<size_t>::max()) ==
        std::numeric_limits<size_t>::max());
  try {
    const KvLayer layer(layout, kF32Cache, kHuge);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kOutOfMemory);
  }
}

}  // namespace
}  // namespace headlight
