// Loader: file bytes in, model out, and the metadata that the tokenizer is built from.
#include <emscripten/bind.h>

#include <cmath>
#include <variant>
#include <vector>

#include "guard.h"
#include "objects.h"
#include "wire.h"

namespace headlight::wasm {
namespace {

const char* StateName(ModelLoader::State state) {
  switch (state) {
    case ModelLoader::State::kHeader:
      return "header";
    case ModelLoader::State::kPlanned:
      return "planned";
    case ModelLoader::State::kData:
      return "data";
    case ModelLoader::State::kShardDone:
      break;
  }
  return "shardDone";
}

// Integers that a double cannot hold go out as strings, so that no digit is lost.
constexpr double kMaxSafeInteger = 9007199254740991.0;

template <typename Integer>
val IntegerToVal(Integer value) {
  const double number = static_cast<double>(value);
  if (std::abs(number) > kMaxSafeInteger) return val(std::to_string(value));
  return val(number);
}

// Undefined for arrays: they are fetched by strings() and numbers().
val ScalarToVal(const GgufValue& value) {
  if (const auto* u = std::get_if<uint64_t>(&value)) return IntegerToVal(*u);
  if (const auto* i = std::get_if<int64_t>(&value)) return IntegerToVal(*i);
  if (const auto* f = std::get_if<double>(&value)) return val(*f);
  if (const auto* b = std::get_if<bool>(&value)) return val(*b);
  if (const auto* s = std::get_if<std::string>(&value)) return val(*s);
  return val::undefined();
}

// Fills a typed array that holds every value of the element type exactly.
val NumbersToVal(const GgufNumberArray& numbers) {
  const char* constructor = "Float64Array";
  switch (numbers.type) {
    case GgufType::kF32:
      constructor = "Float32Array";
      break;
    case GgufType::kU8:
    case GgufType::kU16:
    case GgufType::kU32:
    case GgufType::kBool:
      constructor = "Uint32Array";
      break;
    case GgufType::kI8:
    case GgufType::kI16:
    case GgufType::kI32:
      constructor = "Int32Array";
      break;
    default:
      break;
  }
  std::vector<double> values(numbers.count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = numbers.at(i);
  val array = val::global(constructor).new_(values.size());
  array.call<void>("set", val(emscripten::typed_memory_view(values.size(), values.data())));
  return array;
}

}  // namespace

val RuntimeObject::CreateLoader() const {
  return Guard([&] { return std::make_shared<LoaderObject>(state_); });
}

LoaderObject::LoaderObject(std::shared_ptr<RuntimeState> runtime)
    : runtime_(std::move(runtime)), loader_(runtime_->form), stage_(kStageBytes) {}

val LoaderObject::Append(size_t n_bytes) {
  return Guard([&] {
    if (n_bytes > kStageBytes) {
      throw Error(ErrorCode::kBadOption,
                  "append takes at most " + std::to_string(kStageBytes) + " bytes, got " +
                      std::to_string(n_bytes),
                  {{"option", "n"}});
    }
    val out = val::object();
    out.set("taken", loader_.Append({stage_.data(), n_bytes}));
    out.set("state", State());
    return out;
  });
}

std::string LoaderObject::State() const { return StateName(loader_.state()); }

val LoaderObject::ModelInfo() const {
  return Guard([&] { return ModelInfoToVal(loader_.spec(), loader_.weights_bytes()); });
}

val LoaderObject::PlanSession(const val& options) const {
  return Guard([&] {
    return ToVal(headlight::PlanSession(loader_.spec(), ReadSessionOptions(options),
                                        runtime_->pool.n_threads()));
  });
}

val LoaderObject::Metadata() const {
  return Guard([&] {
    val out = val::object();
    for (const auto& [key, value] : loader_.metadata().values()) {
      const val scalar = ScalarToVal(value);
      if (!scalar.isUndefined()) out.set(key, scalar);
    }
    return out;
  });
}

val LoaderObject::Strings(const std::string& key) const {
  return Guard([&] {
    const GgufStringArray* strings = loader_.metadata().FindStrings(key);
    if (strings == nullptr) return val::null();
    const auto* bytes = reinterpret_cast<const uint8_t*>(strings->bytes.data());
    val out = val::object();
    out.set("bytes", ToUint8Array({bytes, strings->bytes.size()}));
    out.set("offsets", ToUint32Array(strings->offsets));
    return out;
  });
}

val LoaderObject::Numbers(const std::string& key) const {
  return Guard([&] {
    const GgufNumberArray* numbers = loader_.metadata().FindNumbers(key);
    return numbers == nullptr ? val::null() : NumbersToVal(*numbers);
  });
}

val LoaderObject::Allocate() {
  return Guard([&] { loader_.Allocate(); });
}

val LoaderObject::SkipData() {
  return Guard([&] { loader_.SkipData(); });
}

val LoaderObject::BeginShard() {
  return Guard([&] { loader_.BeginShard(); });
}

val LoaderObject::Finish() {
  return Guard([&] {
    auto model = std::make_shared<ModelObject>(runtime_, loader_.Finish());
    stage_ = AlignedArray<uint8_t>();  // nothing more will be appended
    return model;
  });
}

EMSCRIPTEN_BINDINGS(headlight_loader) {
  emscripten::class_<LoaderObject>("Loader")
      .smart_ptr<std::shared_ptr<LoaderObject>>("LoaderPtr")
      .function("stage", &LoaderObject::Stage)
      .function("stageBytes", &LoaderObject::StageBytes)
      .function("append", &LoaderObject::Append)
      .function("state", &LoaderObject::State)
      .function("shardBytes", &LoaderObject::ShardBytes)
      .function("modelInfo", &LoaderObject::ModelInfo)
      .function("planSession", &LoaderObject::PlanSession)
      .function("metadata", &LoaderObject::Metadata)
      .function("strings", &LoaderObject::Strings)
      .function("numbers", &LoaderObject::Numbers)
      .function("dropMetadata", &LoaderObject::DropMetadata)
      .function("allocate", &LoaderObject::Allocate)
      .function("skipData", &LoaderObject::SkipData)
      .function("shardCount", &LoaderObject::ShardCount)
      .function("beginShard", &LoaderObject::BeginShard)
      .function("finish", &LoaderObject::Finish);
}

}  // namespace headlight::wasm
