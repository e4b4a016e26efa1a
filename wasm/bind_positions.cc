// Positions without a model, for the lab: the frequencies of a rotary scheme and rows rotated by
// it, rows with sinusoids added, ALiBi's slopes. In the modules of one thread only.
#include <emscripten/bind.h>

#include <algorithm>
#include <string>
#include <vector>

#include "guard.h"
#include "lab/lab_error.h"
#include "position/absolute.h"
#include "position/rope.h"
#include "position/yarn.h"
#include "wire.h"

namespace headlight::wasm {
namespace {

// Far above what a figure shows; the tables of cosines and sines stay below 128 MiB.
constexpr size_t kMaxRotated = 1024;
constexpr size_t kMaxContext = size_t{1} << 20;
constexpr size_t kMaxTableElements = size_t{1} << 24;
constexpr size_t kMaxHeads = 1024;
constexpr double kAlibiMaxBias = 8.0;  // arXiv 2108.12409

void CheckAtMost(const char* option, size_t value, size_t max) {
  if (value > max) ThrowOption(option, value, "at most", max);
}

RopeStyle ReadStyle(const val& options) {
  const std::string style = ReadString(options, "style");
  if (style == "interleaved") return RopeStyle::kInterleaved;
  if (style == "half-split") return RopeStyle::kHalfSplit;
  throw Error(ErrorCode::kBadOption, "style must be 'interleaved' or 'half-split'",
              {{"option", "style"}, {"value", style}});
}

// One factor, whatever the scheme: what it means is the scheme's.
void ReadScaling(const val& options, RopeSpec& spec) {
  const std::string scaling = ReadString(options, "scaling");
  const double factor = ReadNumber(options, "factor");
  if (scaling == "none") return;
  if (scaling == "linear") {
    spec.linear_scale = factor;
  } else if (scaling == "ntk" || scaling == "dynamic") {
    spec.scaling = scaling == "ntk" ? RopeScaling::kNtk : RopeScaling::kDynamicNtk;
    spec.factor = factor;
  } else if (scaling == "yarn") {
    spec.scaling = RopeScaling::kYarn;
    spec.linear_scale = factor;
    spec.magnitude = YarnMagnitude(factor, 1.0);
  } else {
    throw Error(ErrorCode::kBadOption,
                "scaling must be 'none', 'linear', 'ntk', 'dynamic' or 'yarn'",
                {{"option", "scaling"}, {"value", scaling}});
  }
}

// Rows of one width, a position each.
struct PlacedRows {
  std::vector<float> values;
  std::vector<uint32_t> positions;
  size_t width = 0;
};

PlacedRows ReadRows(const val& rows, const val& positions) {
  PlacedRows out{ReadFloat32Array(rows, "rows"), ReadUint32Array(positions, "positions")};
  const size_t n = out.positions.size();
  if (n != 0) out.width = out.values.size() / n;
  if (n * out.width != out.values.size()) {
    ThrowOption("rows", out.values.size(), "whole rows for positions", n);
  }
  return out;
}

val Rope(const val& options, const val& row_values, const val& row_positions) {
  return Guard([&] {
    RopeSpec spec;
    spec.style = ReadStyle(options);
    spec.n_rot = ReadSize(options, "nRot");
    spec.freq_base = ReadNumber(options, "freqBase");
    spec.n_ctx_original = ReadSize(options, "nCtxOriginal");
    ReadScaling(options, spec);
    CheckAtMost("nRot", spec.n_rot, kMaxRotated);
    const size_t n_ctx = ReadSize(options, "nCtx");
    CheckAtMost("nCtx", n_ctx, kMaxContext);
    PlacedRows rows = ReadRows(row_values, row_positions);
    const bool has_rows = !rows.positions.empty();
    if (has_rows && spec.n_rot > rows.width) {
      ThrowOption("nRot", spec.n_rot, "at most the rows' width of", rows.width);
    }
    if (has_rows) CheckAtMost("nCtx * nRot / 2", n_ctx * (spec.n_rot / 2), kMaxTableElements);
    // Without rows the table is empty, and has only checked the spec.
    RopeTable table(spec, has_rows ? n_ctx : 0);
    for (const uint32_t pos : rows.positions) {
      if (pos >= n_ctx) ThrowOption("positions", pos, "below nCtx,", n_ctx);
      table.Ensure(pos + size_t{1});
    }
    for (size_t i = 0; i < rows.positions.size(); ++i) {
      table.Rotate(rows.values.data() + i * rows.width, rows.positions[i]);
    }
    const std::vector<double> frequencies = RopeFrequencies(spec, n_ctx);
    val out = val::object();
    out.set("frequencies", ToFloat64Array(frequencies));
    out.set("rows", ToFloat32Array(rows.values));
    out.set("magnitude", spec.magnitude);
    return out;
  });
}

val Sinusoids(const val& row_values, const val& row_positions) {
  return Guard([&] {
    PlacedRows rows = ReadRows(row_values, row_positions);
    for (size_t i = 0; i < rows.positions.size(); ++i) {
      AddSinusoid(rows.positions[i], rows.width, rows.values.data() + i * rows.width);
    }
    return ToFloat32Array(rows.values);
  });
}

val Slopes(double n_heads) {
  return Guard([&] {
    if (!(n_heads >= 1.0 && n_heads <= static_cast<double>(kMaxHeads))) {
      throw Error(ErrorCode::kBadOption, "nHeads must be in [1, " + std::to_string(kMaxHeads) + "]",
                  {{"option", "nHeads"}});
    }
    return ToFloat32Array(AlibiSlopes(static_cast<size_t>(n_heads), kAlibiMaxBias));
  });
}

EMSCRIPTEN_BINDINGS(headlight_positions) {
  emscripten::function("rope", &Rope);
  emscripten::function("sinusoids", &Sinusoids);
  emscripten::function("alibiSlopes", &Slopes);
}

}  // namespace
}  // namespace headlight::wasm
