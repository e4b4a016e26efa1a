// ModelLoader over split models: each file's tensors in turn, and every way in which the files may
// not fit together.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gguf_writer.h"
#include "model/model_loader.h"
#include "model_loading.h"
#include "support.h"

namespace headlight::testing {
namespace {

// A split model as writers for the test to spoil: the keys of the model in the first, split.* in
// each, tensors dealt in the order of the file.
std::vector<GgufWriter> Split(const GgufModel& model, size_t n_files, bool tensors_in_first) {
  std::vector<GgufWriter> files(n_files);
  files[0] = model.writer;
  GgufModel source = model;
  const size_t first = tensors_in_first ? 0 : 1;
  size_t i = 0;
  for (const auto& [name, values] : model.values) {
    const size_t target = first + i++ * (n_files - first) / model.values.size();
    if (target == 0) continue;
    files[target].Tensor(source.writer.tensor(name));
    files[0].RemoveTensor(name);
  }
  for (size_t f = 0; f < n_files; ++f) {
    files[f]
        .Raw("split.no", 2, ByteSink().Number(static_cast<uint16_t>(f)).bytes)
        .Raw("split.count", 2, ByteSink().Number(static_cast<uint16_t>(n_files)).bytes)
        .Raw("split.tensors.count", 5,
             ByteSink().Number(static_cast<int32_t>(model.values.size())).bytes);
  }
  return files;
}

std::vector<std::vector<uint8_t>> Files(const std::vector<GgufWriter>& writers) {
  std::vector<std::vector<uint8_t>> files;
  for (const GgufWriter& writer : writers) files.push_back(writer.File());
  return files;
}

}  // namespace

TEST_CASE("model_loader: a split model equals the same model in one file") {
  for (const bool tied : {true, false}) {
    for (const bool tensors_in_first : {true, false}) {
      for (const size_t n_files : {size_t{2}, size_t{3}, size_t{7}}) {
        GgufModelOptions options;
        options.tied_head = tied;
        const GgufModel file = MakeGgufModel(options);
        const auto model = LoadShards(Files(Split(file, n_files, tensors_in_first)), 100);
        for (const auto& [name, values] : file.values) CHECK(WeightsOf(*model, name) == values);
        CHECK(model->spec.tied_head == tied);
        CHECK((model->head.data == model->embedding.data) == tied);
        CHECK(model->weights_bytes == LoadModel(file.writer.File())->weights_bytes);
      }
    }
  }
}

TEST_CASE("model_loader: files of a split model that do not fit together are refused") {
  struct Case {
    const char* name;
    std::function<void(std::vector<GgufWriter>&)> spoil;
    ErrorCode code;
    const char* said;
  };
  const auto u16 = [](uint16_t n) { return ByteSink().Number(n).bytes; };
  const Case cases[] = {
      {"wrong order", [](auto& f) { std::swap(f[1], f[2]); }, ErrorCode::kBadModel, "file 3 of 3"},
      {"second first", [](auto& f) { std::swap(f[0], f[1]); }, ErrorCode::kBadModel, "file 2 of 3"},
      {"one missing", [](auto& f) { f.pop_back(); }, ErrorCode::kBadModel, "2 were given"},
      {"one twice", [](auto& f) { f[2] = f[1]; }, ErrorCode::kBadModel, "file 2 of 3"},
      {"one too many", [](auto& f) { f.push_back(f[2]); }, ErrorCode::kBadOption, "all were given"},
      {"another model's file", [&](auto& f) { f[1].Raw("split.count", 2, u16(4)); },
       ErrorCode::kBadModel, "split in 4"},
      {"count beyond all reason", [&](auto& f) { f[0].Raw("split.count", 2, u16(65535)); },
       ErrorCode::kBadModel, "at most 1000"},
      {"a tensor in two files", [](auto& f) { f[2].Tensor(f[1].tensor("blk.0.ffn_norm.weight")); },
       ErrorCode::kBadModel, "in two files of the split model"},
      {"a tensor in none", [](auto& f) { f[1].RemoveTensor("blk.0.ffn_norm.weight"); },
       ErrorCode::kBadModel, "19 tensors"},
      {"not the number of tensors", [](auto& f) { f[0].Uint("split.tensors.count", 99); },
       ErrorCode::kBadModel, "99"},
      {"a further file without split keys",
       [](auto& f) { f[1].Remove("split.no").Remove("split.count"); }, ErrorCode::kBadModel,
       "split"},
  };
  for (const Case& c : cases) {
    const std::string name = c.name;
    CAPTURE(name);
    std::vector<GgufWriter> writers = Split(MakeGgufModel({}), 3, true);
    REQUIRE_NOTHROW(writers[1].tensor("blk.0.ffn_norm.weight"));
    c.spoil(writers);
    const Error error = ErrorOf([&] { LoadShards(Files(writers), 1000); });
    CAPTURE(error.message());
    CHECK(error.code() == c.code);
    CHECK(Contains(error.message(), c.said));
  }
}

TEST_CASE("model_loader: a missing tensor of a split model is named at the last file's header") {
  std::vector<GgufWriter> writers = Split(MakeGgufModel({}), 2, true);
  for (GgufWriter& writer : writers)
    writer.RemoveTensor("blk.1.attn_v.weight").Remove("split.tensors.count");
  const Error error = ErrorOf([&] { LoadShards(Files(writers)); });
  CHECK(error.code() == ErrorCode::kBadModel);
  CHECK(Detail(error, "tensor") == "blk.1.attn_v.weight");
}

TEST_CASE("model_loader: the headers of all files alone tell what the whole model takes") {
  const std::vector<GgufWriter> writers = Split(MakeGgufModel({}), 3, true);
  ModelLoader loader(DotForm::kWide);
  for (size_t f = 0; f < writers.size(); ++f) {
    if (f > 0) loader.BeginShard();
    CHECK(loader.Append(writers[f].Header()) == writers[f].Header().size());
    CHECK(loader.n_shards() == 3);
    CHECK(loader.shard_bytes() == writers[f].File().size());
    loader.SkipData();
    CHECK(loader.state() == ModelLoader::State::kShardDone);
  }
  const auto model = LoadShards(Files(writers));
  CHECK(loader.weights_bytes() == model->weights_bytes);
  CHECK(loader.spec().tied_head == model->spec.tied_head);
  CHECK(ErrorOf([&] { loader.BeginShard(); }).code() == ErrorCode::kBadOption);
  CHECK(ErrorOf([&] { loader.Finish(); }).code() == ErrorCode::kBadOption);
}

TEST_CASE("model_loader: a model whose data were left out cannot be finished") {
  const GgufWriter writer = MakeGgufModel({}).writer;
  ModelLoader loader(DotForm::kWide);
  CHECK(ErrorOf([&] { ModelLoader(DotForm::kWide).SkipData(); }).code() == ErrorCode::kBadOption);
  loader.Append(writer.Header());
  loader.SkipData();
  const Error error = ErrorOf([&] { loader.Finish(); });
  CHECK(error.code() == ErrorCode::kBadOption);
  CHECK(Contains(error.message(), "left out"));
}

TEST_CASE("model_loader: a cut file of a split model is named before the next begins") {
  std::vector<std::vector<uint8_t>> files = Files(Split(MakeGgufModel({}), 2, true));
  files[0].resize(files[0].size() - 1);
  const Error error = ErrorOf([&] { LoadShards(files); });
  CHECK(error.code() == ErrorCode::kBadModel);
  CHECK(Contains(error.message(), "file 1"));
  CHECK(Detail(error, "offset") == std::to_string(files[0].size()));
}

TEST_CASE("model_loader: a file that ends right after its header says so with its own offset") {
  const std::vector<GgufWriter> writers = Split(MakeGgufModel({}), 2, true);
  ModelLoader loader(DotForm::kWide);
  const std::vector<uint8_t> first = writers[0].File();
  const size_t n_header = loader.Append(first);
  loader.Allocate();
  loader.Append(std::span(first).subspan(n_header));
  loader.BeginShard();
  CHECK(loader.Append(writers[1].Header()) == writers[1].Header().size());
  CHECK(loader.state() == ModelLoader::State::kPlanned);
  const Error error = ErrorOf([&] { loader.Finish(); });
  CHECK(Detail(error, "offset") == std::to_string(writers[1].Header().size()));
  CHECK(Contains(error.message(), "file 2"));
}

}  // namespace headlight::testing
