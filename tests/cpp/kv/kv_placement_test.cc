// Rings: which row a position has, what of it survives, and that nothing is read or written
// elsewhere.
#include "kv/kv_placement.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "kv/kv_cache.h"

namespace headlight {
namespace {

TEST_CASE("PlaceKv: a ring of whole chunks where that is less than the context") {
  CHECK(PlaceKv({0, 0, 64}, 4096) == KvPlacement{4096, 0, 0});
  CHECK(PlaceKv({512, 0, 64}, 4096) == KvPlacement{768, 0, 512});
  CHECK(PlaceKv({128, 4, 64}, 4096) == KvPlacement{512, 256, 128});
  CHECK(PlaceKv({192, 0, 64}, 4096) == KvPlacement{256, 0, 192});
  CHECK(PlaceKv({193, 0, 64}, 4096) == KvPlacement{512, 0, 193});
  CHECK(PlaceKv({11, 0, 8}, 64) == KvPlacement{64, 0, 0});  // the context is shorter than a chunk
  CHECK(PlaceKv({4096, 0, 64}, 4096) == KvPlacement{4096, 0, 0});
  CHECK(PlaceKv({4000, 0, 64}, 4096) == KvPlacement{4096, 0, 0});  // nothing would be saved
}

TEST_CASE(
    "KvPlacement: the last ring_rows positions have rows of their own, chunks stay together") {
  const KvPlacement place{1024, 256, 300};
  for (const size_t end : {256u, 1024u, 1025u, 1791u, 5000u}) {
    std::set<size_t> rows;
    const size_t first = end > 1024 ? end - place.ring_rows() : 256;
    for (size_t pos = first; pos < end; ++pos) {
      CHECK(place.Row(pos) >= 256);
      CHECK(place.Row(pos) < 1024);
      rows.insert(place.Row(pos));
      const size_t start = pos / kRingChunk * kRingChunk;
      CHECK(place.Row(pos) == place.Row(start) + pos - start);
    }
    CHECK(rows.size() == end - first);
  }
  for (size_t pos = 0; pos < 256; ++pos) CHECK(place.Row(pos) == pos);
}

// By its definition: what positions hold after writing 0..n_written - 1.
bool HoldsWindow(const KvPlacement& place, size_t n_left, size_t n_written) {
  std::vector<size_t> held(place.n_rows, ~size_t{0});
  for (size_t pos = 0; pos < n_written; ++pos) held[place.Row(pos)] = pos;
  for (size_t pos = n_left < place.window ? 0 : n_left - place.window + 1; pos < n_left; ++pos) {
    if (held[place.Row(pos)] != pos) return false;
  }
  return true;
}

TEST_CASE("KvPlacement: it can go back to exactly those lengths whose window is still there") {
  for (const KvPlacement& place : {KvPlacement{512, 0, 100}, KvPlacement{768, 256, 200}}) {
    for (const size_t n_written : {1u, 512u, 513u, 700u, 768u, 769u, 1024u, 1500u}) {
      size_t n_wrong = 0;
      for (size_t n = 1; n <= n_written; ++n) {
        n_wrong += place.CanRollBack(n, n_written) != HoldsWindow(place, n, n_written);
      }
      CAPTURE(n_written);
      CHECK(n_wrong == 0);
    }
  }
}

TEST_CASE("KvLayer: a ring gives back the positions it holds, in every format") {
  const HeadLayout layout{2, 2, 5, 3};
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    const KvPlacement place = PlaceKv({100, 4, 32}, 2000);
    KvLayer ring(layout, {type, type}, place);
    KvLayer whole(layout, {type, type}, 2000);
    CHECK(KvLayer::Bytes(layout, {type, type}, place.n_rows) <
          KvLayer::Bytes(layout, {type, type}, 2000) / 3);
    for (size_t pos = 0; pos < 2000; ++pos) {
      std::vector<float> k, v;
      for (size_t i = 0; i < 10; ++i) k.push_back(static_cast<float>((pos * 7 + i * 3) % 251));
      for (size_t i = 0; i < 6; ++i) v.push_back(static_cast<float>((pos * 5 + i * 11) % 241));
      ring.WriteRow(pos, k.data(), v.data());
      whole.WriteRow(pos, k.data(), v.data());
    }
    size_t n_wrong = 0;
    for (size_t head = 0; head < 2; ++head) {
      const KvHeadView a = ring.head(head);
      const KvHeadView b = whole.head(head);
      const auto compare = [&](size_t pos) {
        const KvHeadView chunk = a.ByPosition(pos);
        for (size_t i = 0; i < 5; ++i) {
          n_wrong += a.KeyAt(pos, i) != b.KeyAt(pos, i) || chunk.KeyAt(pos, i) != b.KeyAt(pos, i);
        }
        for (size_t i = 0; i < 3; ++i) {
          n_wrong +=
              a.ValueAt(pos, i) != b.ValueAt(pos, i) || chunk.ValueAt(pos, i) != b.ValueAt(pos, i);
        }
      };
      for (size_t pos = 0; pos < 256; ++pos) compare(pos);  // pinned
      for (size_t pos = 2000 - place.ring_rows(); pos < 2000; ++pos) compare(pos);
    }
    CHECK(n_wrong == 0);
  }
}

TEST_CASE("KvCache: goes back where a ring allows it, to the start where not") {
  const HeadLayout layout{1, 1, 4, 4};
  KvCache cache(std::vector<KvLayerPlan>{{layout, {2000, 0, 0}}, {layout, {512, 0, 100}}}, {},
                2000);
  cache.BeginChunk(600);
  cache.SetRows(600);
  CHECK(cache.Restorable(600) == 600);
  CHECK(cache.Restorable(190) == 190);  // wants 91.., the ring has 88..
  CHECK(cache.Restorable(187) == 187);
  CHECK(cache.Restorable(186) == 0);
  cache.RollBack(300);
  CHECK(cache.n_rows() == 300);
  CHECK(cache.Restorable(186) == 0);  // what was overwritten does not come back
  cache.RollBack(100);
  CHECK(cache.n_rows() == 0);
  cache.BeginChunk(64);
  cache.SetRows(64);
  CHECK(cache.Restorable(3) == 3);
}

}  // namespace
}  // namespace headlight
