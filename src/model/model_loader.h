// From a stream of file bytes to packed weights with no second copy: the header is parsed as it
// arrives, each tensor is packed into its kernel layout as its bytes arrive, and the bytes are
// gone. One loader makes one Model.
#ifndef HEADLIGHT_MODEL_MODEL_LOADER_H_
#define HEADLIGHT_MODEL_MODEL_LOADER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gguf/gguf_reader.h"
#include "model/model.h"
#include "simd/dot_form.h"

namespace headlight {

// Once a call has thrown, the loader is dead: every later call that takes a step throws the same
// error. Accessors stay valid.
class ModelLoader {
 public:
  enum class State : uint8_t {
    kHeader,     // wants header bytes of the current shard
    kPlanned,    // header complete: metadata() and spec() are readable; call Allocate() before more
                 // bytes
    kData,       // wants tensor bytes
    kShardDone,  // every tensor of this shard is packed; BeginShard() for the next, or Finish()
                 // after the last
  };

  explicit ModelLoader(DotForm form);
  ~ModelLoader();

  // Takes bytes of the current shard in order, in chunks of any size; returns how many it took (all
  // of them, except that it stops at the end of the header until Allocate() was called). Bytes
  // after the last tensor are ignored.
  size_t Append(std::span<const uint8_t> bytes);
  State state() const;
  // Reserves the packed weights of this shard, weights_bytes() in all. Throws Error(kOutOfMemory).
  // Where the file's length is known, compare it with shard_bytes() first: the header of a cut or
  // hostile file may ask for memory that no bytes will ever fill.
  void Allocate();
  // Instead of Allocate(): leaves this shard's data out, so that the headers of all shards tell
  // what the model takes. Such a loader plans only: Finish() throws.
  void SkipData();
  // Starts the next file of a split model (split.no, split.count are checked).
  void BeginShard();
  // Files that the model consists of, from the first header on.
  size_t n_shards() const;
  // File bytes of the current shard that must have been seen when it is done (header + data).
  uint64_t shard_bytes() const;

  const GgufReader& metadata() const;  // of the first shard: vocabulary, template
  void DropMetadata();                 // frees the large arrays once they were handed on
  const ModelSpec& spec() const;
  size_t weights_bytes() const;  // packed, known from the header(s) seen so far

  // The finished model. Throws Error(kBadModel) naming a tensor that is missing or a shard that is
  // incomplete.
  std::shared_ptr<const Model> Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_MODEL_LOADER_H_
