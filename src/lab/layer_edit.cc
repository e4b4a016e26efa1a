#include "lab/layer_edit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/svd.h"

namespace headlight {
namespace {

constexpr size_t kNoRow = static_cast<size_t>(-1);

// Row i of the result is row rows[i]; kNoRow is a row of zeros.
Weights TakeRows(const Weights& w, const std::vector<size_t>& rows) {
  Weights out(rows.size(), w.n_cols);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != kNoRow) std::copy_n(w.row(rows[i]), w.n_cols, out.row(i));
  }
  return out;
}

Weights TakeColumns(const Weights& w, const std::vector<size_t>& columns) {
  Weights out(w.n_rows, columns.size());
  for (size_t i = 0; i < w.n_rows; ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      if (columns[j] != kNoRow) out.row(i)[j] = w.row(i)[columns[j]];
    }
  }
  return out;
}

// Adds to `out` the `width` elements of head `head`, or as many of zeros.
void AppendHead(size_t head, size_t width, std::vector<size_t>& out) {
  for (size_t i = 0; i < width; ++i) out.push_back(head == kNoRow ? kNoRow : head * width + i);
}

Weights MeanOfHeads(const Weights& w, size_t width, size_t n_heads) {
  const size_t n_each = w.n_rows / width / n_heads;
  Weights out(n_heads * width, w.n_cols);
  for (size_t row = 0; row < out.n_rows; ++row) {
    for (size_t col = 0; col < w.n_cols; ++col) {
      double sum = 0.0;
      for (size_t i = 0; i < n_each; ++i) {
        sum += static_cast<double>(w.row((row / width * n_each + i) * width + row % width)[col]);
      }
      out.row(row)[col] = static_cast<float>(sum / static_cast<double>(n_each));
    }
  }
  return out;
}

// What a kept pair of every head becomes: its dimensions, in the order of the narrower head.
std::vector<size_t> DimensionsOf(std::span<const uint32_t> pairs, const RopeSpec& rope) {
  const size_t n_half = rope.style == RopeStyle::kNone ? 0 : rope.n_rot / 2;
  const bool is_split = rope.style == RopeStyle::kHalfSplit;
  std::vector<size_t> dims;
  for (const size_t pair : pairs) {
    if (pair >= n_half) continue;
    dims.push_back(is_split ? pair : 2 * pair);
    if (!is_split) dims.push_back(2 * pair + 1);
  }
  for (const size_t pair : pairs) {
    if (is_split && pair < n_half) dims.push_back(pair + n_half);
  }
  for (const size_t pair : pairs) {
    if (pair < n_half) continue;
    dims.push_back(2 * pair);
    dims.push_back(2 * pair + 1);
  }
  return dims;
}

// The rotary table of the kept pairs: the same angles at each position as before, whatever made
// them.
RopeSpec KeptRope(std::span<const uint32_t> pairs, const RopeSpec& rope, size_t n_ctx) {
  RopeSpec kept;
  kept.style = rope.style;
  kept.freq_base = rope.freq_base;
  kept.magnitude = rope.magnitude;
  for (const size_t pair : pairs) kept.n_rot += pair < rope.n_rot / 2 ? 2 : 0;
  if (kept.n_rot == rope.n_rot) return rope;
  const std::vector<double> frequencies = RopeFrequencies(rope, n_ctx);
  const std::vector<double> plain = RopeFrequencies(kept, n_ctx);
  for (size_t i = 0; i < plain.size(); ++i) {
    kept.freq_factors.push_back(static_cast<float>(plain[i] / frequencies[pairs[i]]));
  }
  return kept;
}

void SetWidth(size_t d_qk, LayerCopy& layer) {
  const double share =
      std::sqrt(static_cast<double>(d_qk) / static_cast<double>(layer.spec.heads.d_qk));
  layer.spec.heads.d_qk = d_qk;
  if (share == 1.0) return;
  layer.spec.attention_scale =
      static_cast<float>(static_cast<double>(layer.spec.attention_scale) / share);
  for (float& value : layer.w_q.values) {
    value = static_cast<float>(static_cast<double>(value) * share);
  }
}

// Rows [begin, begin + n) of w as doubles.
Doubles RowsOf(const Weights& w, size_t begin, size_t n) {
  Doubles out(n, w.n_cols);
  std::copy_n(w.row(begin), out.values.size(), out.values.begin());
  return out;
}

void SetRows(const Doubles& from, size_t begin, Weights& w) {
  for (size_t i = 0; i < from.values.size(); ++i) {
    w.row(begin)[i] = static_cast<float>(from.values[i]);
  }
}

}  // namespace

void PoolKvHeads(size_t n, LayerCopy& layer) {
  layer.w_k = MeanOfHeads(layer.w_k, layer.spec.heads.d_qk, n);
  layer.w_v = MeanOfHeads(layer.w_v, layer.spec.heads.d_v, n);
  layer.spec.heads.n_kv_heads = n;
}

void CutRotaryPairs(std::span<const uint32_t> pairs, size_t n_ctx, LayerCopy& layer) {
  const HeadLayout heads = layer.spec.heads;
  const std::vector<size_t> dims = DimensionsOf(pairs, layer.spec.rope);
  const auto rows = [&](size_t n_heads) {
    std::vector<size_t> out;
    for (size_t head = 0; head < n_heads; ++head) {
      for (const size_t dim : dims) out.push_back(head * heads.d_qk + dim);
    }
    return out;
  };
  layer.w_q = TakeRows(layer.w_q, rows(heads.n_q_heads));
  layer.w_k = TakeRows(layer.w_k, rows(heads.n_kv_heads));
  layer.spec.rope = KeptRope(pairs, layer.spec.rope, n_ctx);
  SetWidth(dims.size(), layer);
}

// A score is x^T W_q^T W_k y: for a KV head, W_q^T of its query heads above one another times W_k.
void CutQkProduct(size_t d_qk, LayerCopy& layer) {
  const HeadLayout heads = layer.spec.heads;
  const size_t n_q = heads.n_q_per_kv();
  const size_t d_model = layer.w_q.n_cols;
  Weights w_q(heads.n_q_heads * d_qk, d_model), w_k(heads.n_kv_heads * d_qk, d_model);
  for (size_t g = 0; g < heads.n_kv_heads; ++g) {
    Doubles q(heads.d_qk, n_q * d_model);
    for (size_t i = 0; i < heads.d_qk; ++i) {
      for (size_t h = 0; h < n_q; ++h) {
        std::copy_n(layer.w_q.row((g * n_q + h) * heads.d_qk + i), d_model, q.row(i) + h * d_model);
      }
    }
    Doubles k = RowsOf(layer.w_k, g * heads.d_qk, heads.d_qk);
    CutProduct(d_qk, q, k);
    SetRows(k, g * d_qk, w_k);
    for (size_t i = 0; i < d_qk; ++i) {
      for (size_t j = 0; j < n_q * d_model; ++j) {
        const size_t row = (g * n_q + j / d_model) * d_qk + i;
        w_q.row(row)[j % d_model] = static_cast<float>(q.row(i)[j]);
      }
    }
  }
  layer.w_q = std::move(w_q);
  layer.w_k = std::move(w_k);
  SetWidth(d_qk, layer);
}

// What a KV head adds to the stream is W_o of each of its query heads times W_v: those W_o above
// one another times W_v. W_o gets the orthonormal factor: its columns then have one size, which is
// what blocks of codes keep best, and the rows of W_v carry the weight of each dimension.
void CutVoProduct(size_t d_v, LayerCopy& layer) {
  const HeadLayout heads = layer.spec.heads;
  const size_t n_q = heads.n_q_per_kv();
  const size_t d_model = layer.w_o.n_rows;
  Weights w_v(heads.n_kv_heads * d_v, layer.w_v.n_cols), w_o(d_model, heads.n_q_heads * d_v);
  for (size_t g = 0; g < heads.n_kv_heads; ++g) {
    Doubles o(heads.d_v, n_q * d_model);
    for (size_t i = 0; i < heads.d_v; ++i) {
      for (size_t j = 0; j < n_q * d_model; ++j) {
        const size_t column = (g * n_q + j / d_model) * heads.d_v + i;
        o.row(i)[j] = static_cast<double>(layer.w_o.row(j % d_model)[column]);
      }
    }
    Doubles v = RowsOf(layer.w_v, g * heads.d_v, heads.d_v);
    CutProduct(d_v, o, v);
    SetRows(v, g * d_v, w_v);
    for (size_t i = 0; i < d_v; ++i) {
      for (size_t j = 0; j < n_q * d_model; ++j) {
        const size_t column = (g * n_q + j / d_model) * d_v + i;
        w_o.row(j % d_model)[column] = static_cast<float>(o.row(i)[j]);
      }
    }
  }
  layer.w_v = std::move(w_v);
  layer.w_o = std::move(w_o);
  layer.spec.heads.d_v = d_v;
}

void RemoveHeads(const std::vector<HeadFate>& fates, LayerCopy& layer) {
  const HeadLayout heads = layer.spec.heads;
  const size_t n_q = heads.n_q_per_kv();
  std::vector<std::vector<size_t>> staying(heads.n_kv_heads);
  std::vector<size_t> fixed;
  size_t n_most = 1;  // a layout has at least one query head a KV head
  for (size_t head = 0; head < heads.n_q_heads; ++head) {
    std::vector<size_t>& group = staying[head / n_q];
    if (fates[head].kind == HeadFate::kStays) group.push_back(head);
    if (fates[head].kind == HeadFate::kFixed) fixed.push_back(head);
    n_most = std::max(n_most, group.size());
  }
  std::vector<size_t> q_rows, o_columns;
  for (std::vector<size_t>& group : staying) {
    group.resize(n_most, kNoRow);
    for (const size_t head : group) {
      AppendHead(head, heads.d_qk, q_rows);
      AppendHead(head, heads.d_v, o_columns);
    }
  }
  for (const size_t head : fixed) {
    AppendHead(head, heads.d_v, o_columns);
    layer.spec.fixed_heads.push_back({head / n_q, *fates[head].pattern});
  }
  layer.w_q = TakeRows(layer.w_q, q_rows);
  layer.w_o = TakeColumns(layer.w_o, o_columns);
  layer.spec.heads.n_q_heads = n_most * heads.n_kv_heads;
}

void SilenceHeads(const std::vector<HeadFate>& fates, LayerCopy& layer) {
  const size_t d_v = layer.spec.heads.d_v;
  for (size_t head = 0; head < fates.size(); ++head) {
    if (fates[head].kind == HeadFate::kStays) continue;
    for (size_t row = 0; row < layer.w_o.n_rows; ++row) {
      std::fill_n(layer.w_o.row(row) + head * d_v, d_v, 0.0f);
    }
  }
}

}  // namespace headlight
