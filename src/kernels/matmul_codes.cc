// Weights with codes against 8-bit activations. Per output and block of 32 columns: an exact
// integer sum (the halves' multipliers, and factors of 16 columns, included), times the product of
// the two scales, added to the output's float sum, blocks in order. Where weights have minima, what
// they take away from the output comes before (mins.h). That sequence is the same in every tile
// shape and form, so an output's bits depend on nothing else.
//
// Here: the walk over strips, tokens and panels. The arithmetic is in code_tile.cc.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/code_tile.h"
#include "kernels/mins.h"
#include "kernels/tiles.h"
#include "kernels/widen.h"

namespace headlight {
namespace {

// Codes of the tokens that meet a tile of weights while that is in the first-level cache: half of a
// second-level cache of 256 KiB, the smallest about.
constexpr size_t kTokenBlockBytes = 128 * 1024;
// Blocks of a panel, of all its groups: 12 KiB of widened codes, which stay in a first-level cache
// of 32 KiB beside the tokens of a tile.
constexpr size_t kPanelGroupBlocks = 48;

// Adjacent row groups of a strip against some tokens. tile.y and n_rows belong to the first group.
struct Job {
  const CodeKernel& kernel;
  CodeGroup from;
  size_t n_groups;  // the kernel's, or one
  size_t n_tokens;
  size_t n_rows;  // from tile.y on, at least one
  CodeTile tile;

  CodeKernel::Run run_token() const { return n_groups == 1 ? kernel.one : kernel.token; }
};

void Advance(CodeTile& tile, size_t n_blocks, size_t code_bytes) {
  tile.x += n_blocks * kBlockCols * code_bytes;
  tile.scales += n_blocks;
  tile.multipliers += n_blocks * kBlockHalves;
  tile.sums += n_blocks;
}

// A tile with fewer rows than its groups have: by way of a place that has them all.
void RunRagged(CodeKernel::Run run, CodeTile tile, size_t n_tokens, size_t n_rows) {
  constexpr size_t kStride = kMaxTileGroups * kRowGroup;
  float all[kMaxTileTokens * kStride] = {};
  float* y = tile.y;
  for (size_t t = 0; t < n_tokens && !tile.is_first; ++t) {
    std::copy_n(y + t * tile.y_stride, n_rows, all + t * kStride);
  }
  const size_t y_stride = tile.y_stride;
  tile.y = all;
  tile.y_stride = kStride;
  run(tile);
  for (size_t t = 0; t < n_tokens; ++t) std::copy_n(all + t * kStride, n_rows, y + t * y_stride);
}

// kernel.n_tokens tokens at a time, and one by one those that are left.
void RunTokens(const Job& job) {
  const bool is_ragged = job.n_rows < job.n_groups * kRowGroup;
  if (job.n_tokens == 1 && !is_ragged) return job.run_token()(job.tile);
  const bool takes_several = job.n_groups == job.kernel.n_groups;
  CodeTile tile = job.tile;
  for (size_t left = job.n_tokens; left != 0;) {
    const size_t n = takes_several && left >= job.kernel.n_tokens ? job.kernel.n_tokens : 1;
    const CodeKernel::Run run = n == 1 ? job.run_token() : job.kernel.tokens;
    is_ragged ? RunRagged(run, tile, n, job.n_rows) : run(tile);
    Advance(tile, n * tile.token_stride, job.kernel.code_bytes);
    tile.y += n * tile.y_stride;
    left -= n;
  }
}

// Weights as they are stored.
void RunInPlace(Job& job) {
  CodeTile& tile = job.tile;
  const CodeGroup& from = job.from;
  tile.codes = from.Codes(0);
  tile.code_stride = tile.scale_stride = from.layout.block_bytes;
  tile.w_scales = from.strip + from.group * kScaleBlockBytes;
  RunTokens(job);
}

// By way of panels: scales[block][group][4], and codes[block][group][kPanelBlockBytes] unless they
// stay where they are.
void RunPanels(Job& job) {
  const bool has_codes = job.kernel.widened == WidenedPart::kAll;
  alignas(kAlignment) float scales[kPanelGroupBlocks * kRowGroup];
  alignas(kAlignment) uint8_t codes[kPanelGroupBlocks * kPanelBlockBytes];
  const size_t n_panel_blocks = kPanelGroupBlocks / job.n_groups;
  const size_t n_blocks = job.from.shape.n_blocks;
  const size_t scale_stride = job.n_groups * kRowGroup;
  CodeTile& tile = job.tile;
  tile.w_scales = reinterpret_cast<const uint8_t*>(scales);
  tile.scale_stride = scale_stride * sizeof(float);
  tile.code_stride = has_codes ? job.n_groups * kPanelBlockBytes : job.from.layout.block_bytes;
  for (size_t begin = 0; begin < n_blocks; begin += n_panel_blocks) {
    tile.n_blocks = std::min(n_panel_blocks, n_blocks - begin);
    if (has_codes) WidenCodes(job.from, job.n_groups, begin, tile.n_blocks, codes);
    CodeGroup group = job.from;
    for (size_t g = 0; g < job.n_groups; ++g, ++group.group) {
      WidenScales(group, begin, tile.n_blocks, scales + g * kRowGroup, scale_stride);
    }
    tile.codes = has_codes ? codes : job.from.Codes(begin);
    RunTokens(job);
    tile.is_first = false;
    Advance(tile, n_panel_blocks, job.kernel.code_bytes);
  }
}

void RunJob(Job job, const Activations& x, size_t token) {
  if (job.from.shape.code.has_mins) {
    SubtractMins(job.from, job.n_groups, x, {token, job.n_tokens},
                 {job.tile.y, job.tile.y_stride, job.n_rows});
  }
  job.kernel.widened == WidenedPart::kNothing ? RunInPlace(job) : RunPanels(job);
}

// What turns stored codes into weights, a factor of the activations' sums.
int32_t OffsetOf(const PackedShape& shape, const CodeKernel& kernel) {
  const bool is_signed = shape.form == DotForm::kSigned && shape.family == PackedFamily::kP8;
  return is_signed || shape.code.values == CodeValues::kUnsigned ? 0 : kernel.offset;
}

const uint8_t* CodesOf(const Activations& x, size_t token, size_t code_bytes) {
  return code_bytes == sizeof(int8_t) ? reinterpret_cast<const uint8_t*>(x.codes(token))
                                      : reinterpret_cast<const uint8_t*>(x.wide_codes(token));
}

// The strips of a matrix, all alike but for the last.
struct Strips {
  const PackedShape& shape;
  const uint8_t* data;
  StripLayout whole, last;
  size_t n_whole;  // strips before the last
  size_t bytes;    // of a whole one

  explicit Strips(const PackedMatrix& w)
      : shape(w.shape),
        data(w.data),
        whole(shape, kStripGroups),
        last(StripOf(shape, shape.n_row_groups - 1)),
        n_whole((shape.n_row_groups - 1) / kStripGroups),
        bytes(whole.Bytes(shape.n_blocks)) {}
  CodeGroup GroupAt(size_t group) const {
    const size_t strip = group / kStripGroups;
    return {shape, strip < n_whole ? whole : last, data + strip * bytes, group % kStripGroups};
  }
  // Tiles that can follow one another from `group` on: strips of one token's kernel, where they
  // lie.
  size_t NTiles(size_t group, size_t group_end, const CodeKernel& kernel) const {
    if (kernel.widened != WidenedPart::kNothing || group % kStripGroups != 0) return 1;
    const size_t n_whole_groups = shape.n_rows / kStripRows * kStripGroups;
    const size_t end = std::min(group_end, n_whole_groups);
    return end >= group + kStripGroups ? (end - group) / kStripGroups : 1;
  }
};

}  // namespace

// Tiles of the kernel's groups over a range; the groups of a strip that are left over go one by
// one.
void MatMulCodes(const RowRange& range) noexcept {
  if (range.group_begin >= range.group_end) return;
  const Activations& x = *range.x;
  const Strips strips(*range.w);
  const PackedShape& shape = strips.shape;
  const CodeKernel& kernel = CodeKernelOf(shape, x.n_tokens() == 1);
  const size_t token_bytes = shape.n_blocks * kBlockCols * kernel.code_bytes;
  const size_t token_block =
      std::max(RoundUp(kTokenBlockBytes / token_bytes, kernel.n_tokens), kernel.n_tokens);
  CodeTile tile{};
  tile.n_blocks = tile.token_stride = shape.n_blocks;
  tile.y_stride = range.y_stride;
  tile.never = kBlockCols;
  tile.offset = OffsetOf(shape, kernel);
  tile.is_first = !shape.code.has_mins;
  for (size_t token = 0; token < x.n_tokens(); token += token_block) {
    const size_t n_tokens = std::min(token_block, x.n_tokens() - token);
    tile.x = CodesOf(x, token, kernel.code_bytes);
    tile.scales = x.scales(token);
    tile.multipliers = x.multipliers(token);
    tile.sums = x.sums(token);
    for (size_t group = range.group_begin; group < range.group_end;) {
      const CodeGroup from = strips.GroupAt(group);
      const size_t n_left = std::min(from.layout.n_groups - from.group, range.group_end - group);
      const size_t n_groups = n_left >= kernel.n_groups ? kernel.n_groups : 1;
      const size_t row = group * kRowGroup;
      tile.y = range.y + token * range.y_stride + row;
      tile.n_tiles = strips.NTiles(group, range.group_end, kernel);
      RunJob({kernel, from, n_groups, n_tokens, shape.n_rows - row, tile}, x, token);
      group += tile.n_tiles * n_groups;
    }
  }
}

}  // namespace headlight
