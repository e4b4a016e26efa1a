// Attention of many queries (prefill): query block x key chunk with online softmax, after
// FlashAttention (arXiv 2205.14135). A block is kBlockRows rows of one KV head, a row being one
// query head at one token; the heads that share a KV head are adjacent rows. Memory is O(1) in the
// context; chunks that the mask excludes are skipped, and inside a chunk so are the keys that a row
// does not admit. attention_chunk does the arithmetic.
#include <algorithm>

#include "attention/attention.h"
#include "attention/attention_chunk.h"
#include "attention/key_range.h"
#include "attention/scratch.h"

namespace headlight {
namespace {

// A block's share of the work.
struct Block {
  const AttentionSpec& spec;
  const AttentionArgs& args;
  size_t kv_head;
  size_t first_row;  // of n_tokens * n_q_per_kv
  size_t n_rows;     // 1..kBlockRows

  size_t Token(size_t i) const { return (first_row + i) / spec.layout.n_q_per_kv(); }
  size_t QHead(size_t i) const {
    return kv_head * spec.layout.n_q_per_kv() + (first_row + i) % spec.layout.n_q_per_kv();
  }
  KeyRange Keys(size_t i) const { return KeysOf(spec, args, args.pos0 + Token(i)); }
};

void AttendBlock(const Block& block, const AttentionScratch& scratch) {
  const HeadLayout& layout = block.spec.layout;
  const AttentionArgs& args = block.args;
  const KvHeadView kv = args.kv->head(block.kv_head);
  KeyRange keys[kBlockRows];
  RowBias biases[kBlockRows];
  for (size_t i = 0; i < block.n_rows; ++i) {
    const float* q = args.q + block.Token(i) * args.q_stride + block.QHead(i) * layout.d_qk;
    PrepareQueries(block.spec, kv.format.k, {q, layout.d_qk}, i, scratch);
    keys[i] = block.Keys(i);
    biases[i] = BiasOf(block.spec, args, block.QHead(i), block.Token(i));
    BeginCapture(args, block.QHead(i), block.Token(i));
  }
  const KeyRange all{keys[0].begin, keys[block.n_rows - 1].end};
  const size_t stride = PartialFloats(layout.d_v);
  std::fill_n(scratch.totals, block.n_rows * stride, 0.0f);
  const ChunkWalk walk(block.spec, all);
  for (size_t chunk = 0; chunk < walk.n_chunks; ++chunk) {
    KeyRange in_chunk[kBlockRows];
    size_t end = 0;
    for (size_t i = 0; i < block.n_rows; ++i) {
      ChunkKeys own = ChunkKeysOf(block.spec, keys[i], walk.Start(chunk));
      // Bounds that do not decrease: past where its window left the chunk to the sinks, a row
      // computes what the rows before it do, and drops it.
      if (own.hull.end < end) own = {{own.hull.begin, end}, {own.hull.end, end}};
      end = own.hull.end;
      in_chunk[i] = own.hull;
      biases[i].hole = own.hole;
    }
    const bool is_first = chunk == 0;
    const ChunkRows rows{biases, in_chunk, block.n_rows,
                         is_first ? scratch.totals : scratch.partials, stride};
    AttendChunk(block.spec, kv, rows, scratch);
    for (size_t i = 0; i < block.n_rows && !is_first; ++i) {
      MergePartial(scratch.partials + i * stride, layout.d_v, scratch.totals + i * stride);
    }
  }
  for (size_t i = 0; i < block.n_rows; ++i) {
    float* out = args.out + block.Token(i) * args.out_stride + block.QHead(i) * layout.d_v;
    FinishRow(block.spec, block.QHead(i), scratch.totals + i * stride, out);
    FinishCapture(block.spec, args, block.QHead(i), block.Token(i), scratch.totals + i * stride);
  }
}

}  // namespace

void AttentionTiled(const AttentionSpec& spec, const AttentionArgs& args,
                    AttentionWorkspace& workspace, ThreadPool& pool) noexcept {
  const size_t n_rows = args.n_tokens * spec.layout.n_q_per_kv();
  const size_t n_blocks = CeilDiv(n_rows, kBlockRows);
  const size_t n_kv_heads = spec.layout.n_kv_heads;
  pool.ParallelFor(n_blocks * n_kv_heads, [&](size_t task, size_t thread) {
    // Under a causal mask the last blocks have the most keys: they go first, so that threads end
    // together.
    const size_t first_row = (n_blocks - 1 - task / n_kv_heads) * kBlockRows;
    const Block block{spec, args, task % n_kv_heads, first_row,
                      std::min(kBlockRows, n_rows - first_row)};
    AttendBlock(block, AttentionScratch(spec.layout, workspace.thread_scratch(thread)));
  });
}

}  // namespace headlight
