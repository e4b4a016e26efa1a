// Attention of one query (decode), after Flash-Decoding: each (KV head, chunk of keys) is a task,
// and the partial (max, sum, acc) of the chunks are merged in order afterwards, so that neither the
// thread count nor which thread took a task changes a bit. All query heads of a KV head share each
// loaded key and value. Bound by memory: a cache row is read once. attention_chunk does the
// arithmetic.
#include <algorithm>

#include "attention/attention.h"
#include "attention/attention_chunk.h"
#include "attention/key_range.h"
#include "attention/online_softmax-inl.h"
#include "attention/scratch.h"

namespace headlight {
namespace {

// Where a chunk's partials of the query heads of one KV head go.
struct HeadPartials {
  float* first;        // of the first query head
  size_t head_stride;  // floats from a head to the next
};

// Rows `in_chunk` of the cache against all query heads of kv_head.
void AttendHeads(const AttentionSpec& spec, const AttentionArgs& args, size_t kv_head,
                 const ChunkKeys& in_chunk, const AttentionScratch& scratch,
                 HeadPartials partials) {
  const HeadLayout& layout = spec.layout;
  const size_t n_heads = layout.n_q_per_kv();
  for (size_t head = 0; head < n_heads; head += kBlockRows) {
    const size_t n_rows = std::min(kBlockRows, n_heads - head);
    const float* q = args.q + (kv_head * n_heads + head) * layout.d_qk;
    PrepareQueries(spec, args.kv->format().k, {q, n_rows * layout.d_qk}, 0, scratch);
    KeyRange keys[kBlockRows];
    std::fill_n(keys, n_rows, in_chunk.hull);
    RowBias biases[kBlockRows];
    for (size_t i = 0; i < n_rows; ++i) {
      biases[i] = BiasOf(spec, args, kv_head * n_heads + head + i, 0);
      biases[i].hole = in_chunk.hole;
    }
    const ChunkRows rows{biases, keys, n_rows, partials.first + head * partials.head_stride,
                         partials.head_stride};
    AttendChunk(spec, args.kv->head(kv_head), rows, scratch);
  }
}

}  // namespace

void AttentionDecode(const AttentionSpec& spec, const AttentionArgs& args,
                     AttentionWorkspace& workspace, ThreadPool& pool) noexcept {
  const HeadLayout& layout = spec.layout;
  const KeyRange all = KeysOf(spec, args, args.pos0);
  const ChunkWalk walk(spec, all);
  const size_t n_chunks = walk.n_chunks;
  const size_t partial_floats = PartialFloats(layout.d_v);
  for (size_t head = 0; head < layout.n_q_heads; ++head) BeginCapture(args, head, 0);
  if (n_chunks == 0) {
    std::fill_n(args.out, layout.out_width(), 0.0f);
    const float nothing[] = {kEmptySoftmax.max, kEmptySoftmax.sum};
    for (size_t head = 0; head < layout.n_q_heads; ++head) {
      FinishCapture(spec, args, head, 0, nothing);
    }
    return;
  }
  const size_t head_stride = n_chunks * partial_floats;
  float* partials = workspace.partials();  // [n_q_heads, n_chunks, partial_floats]
  pool.ParallelFor(n_chunks * layout.n_kv_heads, [&](size_t task, size_t thread) {
    const size_t kv_head = task / n_chunks;
    const size_t chunk = task % n_chunks;
    AttendHeads(spec, args, kv_head, ChunkKeysOf(spec, all, walk.Start(chunk)),
                AttentionScratch(layout, workspace.thread_scratch(thread)),
                {partials + kv_head * layout.n_q_per_kv() * head_stride + chunk * partial_floats,
                 head_stride});
  });
  // A few thousand floats a chunk at most: not worth waking threads for.
  for (size_t head = 0; head < layout.n_q_heads; ++head) {
    float* total = partials + head * head_stride;
    for (size_t chunk = 1; chunk < n_chunks; ++chunk) {
      MergePartial(total + chunk * partial_floats, layout.d_v, total);
    }
    FinishRow(spec, head, total, args.out + head * layout.d_v);
    FinishCapture(spec, args, head, 0, total);
  }
}

}  // namespace headlight
