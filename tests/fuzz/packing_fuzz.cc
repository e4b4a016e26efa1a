// libFuzzer target: any bytes as the data of a tensor of any type and shape, in chunks of any size.
// They are packed or refused by a typed error, the same for every chunk size, and each packed row
// can be read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/dtype.h"
#include "base/error.h"
#include "quant/packed.h"

namespace {

using namespace headlight;

struct Plan {
  TensorType type;
  size_t n_rows, n_cols;
  DotForm form;
};

std::string Outcome(const Plan& plan, std::span<const uint8_t> bytes, size_t chunk) {
  try {
    const PackedShape shape = PlanPacked(plan.type, plan.n_rows, plan.n_cols, plan.form);
    AlignedArray<uint8_t> dst(shape.bytes);
    PackedWriter writer(plan.type, shape, dst.data());
    while (!bytes.empty() && !writer.done()) {
      const size_t n = writer.Append(bytes.first(std::min(chunk, bytes.size())));
      if (n == 0) std::abort();
      bytes = bytes.subspan(n);
    }
    uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
    std::vector<float> row(plan.n_cols);
    for (size_t r = 0; r < plan.n_rows; ++r) {
      DecodeRow({shape, dst.data()}, r, row.data());
      for (const float x : row) hash = (hash ^ static_cast<uint64_t>(x == x)) * 0x100000001B3u;
    }
    for (const uint8_t byte : dst) hash = (hash ^ byte) * 0x100000001B3u;
    return std::to_string(hash);
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace

// The last bytes say what the others are, so that seeds are file data: type, rows, blocks of
// columns, form, chunk size.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  constexpr size_t kChoices = 5;
  if (n_bytes < kChoices) return 0;
  const uint8_t* choice = data + n_bytes - kChoices;
  const uint32_t number = choice[0] % 48;
  const TensorTypeTraits* type = FindTensorType(number);
  if (type == nullptr) return 0;
  const Plan plan = {static_cast<TensorType>(number), 1 + size_t{choice[1]} % 9,
                     (1 + size_t{choice[2]} % 4) * type->n_block,
                     static_cast<DotForm>(choice[3] % 4)};
  const std::span<const uint8_t> bytes(data, n_bytes - kChoices);
  const std::string whole = Outcome(plan, bytes, std::max<size_t>(bytes.size(), 1));
  const std::string pieces = Outcome(plan, bytes, 1 + choice[4] % 61);
  if (whole != pieces) {
    std::fprintf(stderr, "whole: %s\nin pieces: %s\n", whole.c_str(), pieces.c_str());
    std::abort();
  }
  return 0;
}
