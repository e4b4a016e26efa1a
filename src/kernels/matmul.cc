#include "kernels/matmul.h"

#include <algorithm>

#include "kernels/tiles.h"
#include "quant/packed_layout.h"

namespace headlight {
namespace {

// Row groups of a task are a multiple of this: 16 rows are one cache line of y, so threads do not
// share lines.
constexpr size_t kTaskGroupsUnit = kAlignment / sizeof(float) / kRowGroup;
static_assert(kTaskGroupsUnit % kStripGroups == 0, "a task has whole strips");
// Tasks a thread, so that one that is slow or comes late leaves its rest to the others.
constexpr size_t kTasksPerThread = 4;
// Products of codes (multiply-adds) below which a task costs more to hand out than to do: about 5
// us of work.
constexpr size_t kMinTaskProducts = 256 * 1024;

bool UsesCodes(const MatMulJob& job, const Activations& x) {
  return HasCodes(job.w->shape.family) && x.type() == ActivationType::kInt8;
}

size_t GroupEnd(const MatMulJob& job) { return std::min(job.group_end, job.w->shape.n_row_groups); }

size_t NGroups(const MatMulJob& job) { return GroupEnd(job) - job.group_begin; }

size_t TaskGroups(std::span<const MatMulJob> jobs, const Activations& x, size_t n_threads) {
  size_t n_groups = 0;
  for (const MatMulJob& job : jobs) n_groups += NGroups(job);
  if (n_threads == 1) return std::max<size_t>(n_groups, 1);
  const size_t group_products = x.n_tokens() * x.n_cols() * kRowGroup;
  const size_t smallest = CeilDiv(kMinTaskProducts, std::max<size_t>(group_products, 1));
  return RoundUp(std::max(CeilDiv(n_groups, n_threads * kTasksPerThread), smallest),
                 kTaskGroupsUnit);
}

}  // namespace

MatMulJob BandOf(MatMulJob job, MatMulBand band) noexcept {
  const size_t n_groups = job.w->shape.n_row_groups;
  const size_t n_of_band = RoundUp(CeilDiv(n_groups, band.n), kTaskGroupsUnit);
  job.group_begin = std::min(band.i * n_of_band, n_groups);
  job.group_end = std::min(job.group_begin + n_of_band, n_groups);
  return job;
}

void MatMul(std::span<const MatMulJob> jobs, Activations& x, ThreadPool& pool) noexcept {
  const size_t task_groups = TaskGroups(jobs, x, pool.n_threads());
  size_t n_tasks = 0;
  for (const MatMulJob& job : jobs) {
    n_tasks += CeilDiv(NGroups(job), task_groups);
    if (UsesCodes(job, x)) x.Quantise(pool, CodeUseOf(job.w->shape));
  }
  pool.ParallelFor(n_tasks, [&](size_t task, size_t) {
    // Tasks are numbered through the jobs.
    const MatMulJob* job = jobs.data();
    for (size_t n = CeilDiv(NGroups(*job), task_groups); task >= n;
         n = CeilDiv(NGroups(*job), task_groups)) {
      task -= n;
      ++job;
    }
    RowRange range;
    range.w = job->w;
    range.x = &x;
    range.y = job->y;
    range.y_stride = job->y_stride;
    range.group_begin = job->group_begin + task * task_groups;
    range.group_end = std::min(range.group_begin + task_groups, GroupEnd(*job));
    if (UsesCodes(*job, x)) {
      MatMulCodes(range);
    } else {
      MatMulFloats(range);
    }
  });
}

}  // namespace headlight
