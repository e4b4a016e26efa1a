// What the reader says of files that are not GGUF: what they look like, the same for every chunk
// size.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gguf/gguf_reader.h"
#include "gguf_reading.h"
#include "support.h"

namespace headlight::testing {
namespace {

using std::string_literals::operator""s;

struct Foreign {
  std::string bytes;
  const char* said;
};

void CheckForeign(const Foreign& f) {
  CAPTURE(f.bytes);
  for (const size_t n_more :
       {size_t{0}, size_t{1}, size_t{200}}) {  // short and long files of the kind
    if (n_more > 0 && f.said == nullptr) continue;
    if (n_more > 0 && f.bytes.empty()) continue;
    std::vector<uint8_t> file(f.bytes.begin(), f.bytes.end());
    file.resize(file.size() + n_more, 'x');
    std::string first_message;
    for (const size_t chunk : {size_t{1}, size_t{7}, size_t{4096}}) {
      GgufReader reader;
      const Error error = ErrorOf([&] {
        AppendInChunks(reader, file, chunk);
        reader.Finish();
      });
      CAPTURE(error.message());
      CHECK(error.code() == ErrorCode::kBadModel);
      CHECK(Contains(error.message(), f.said != nullptr ? f.said : "download is incomplete"));
      if (first_message.empty()) first_message = error.message();
      CHECK(error.message() == first_message);
    }
  }
}

}  // namespace

TEST_CASE("gguf: other files are called by their name") {
  const Foreign files[] = {
      {"", "empty file"},
      {"<!DOCTYPE html><html><head><title>404</title></head><body>Not found</body></html>",
       "HTML page"},
      {"\n\n  <!doctype HTML>\n<html lang=en>", "HTML page"},
      {"\xEF\xBB\xBF<html>", "HTML page"},
      {"<HTML><body>", "HTML page"},
      {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "XML document"},
      {"{\"error\":\"Invalid credentials in Authorization header\"}", "JSON text"},
      {"[]", "JSON text"},
      {"Entry not found", "text that begins 'Entry not found"},
      {"Entry not found", "'; check the address or the file"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "Git LFS pointer"},
      {"\x1F\x8B\x08\0\0\0\0\0"s, "gzip archive"},
      {"PK\x03\x04\x14\0\0\0\x08\0"s, "zip archive"},
      {"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0archive/data.pkl"s,
       "PyTorch checkpoint"},
      {"\x80\x02\x8A\x0Al\xFC\x9C"s, "Python pickle"},
      {"\x98\x01\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}"s, "safetensors file"},
      {"\x28\xB5\x2F\xFD\x24\0"s, "zstd archive"},
      {"\xFD"
       "7zXZ\0\0"s,
       "xz archive"},
      {"BZh91AY&SY", "bzip2 archive"},
      {"7z\xBC\xAF\x27\x1C\0\4"s, "7z archive"},
      {"\x89HDF\r\n\x1A\n", "HDF5 file"},
      {"\x93NUMPY\x01\0v\0"s, "NumPy array"},
      {"\0asm\x01\0\0\0"s, "WebAssembly module"},
      {"lmgg\0}\0\0\0\x10\0\0"s, "GGML file"},
      {"tjgg\x03\0\0\0\0}\0\0"s, "GGJT file"},
      {"fmgg\x01\0\0\0"s, "GGMF file"},
      {"FUGG\x03\0\0\0"s, "swapped"},
      {"\x01\x02\x03\x04\xFF\xFE\x7F\x80\x90"s,
       "unknown format that begins '\\x01\\x02\\x03\\x04\\xFF\\xFE\\x7F\\x80'"},
      {"gguf", "text that begins 'gguf"},
      {"GGU", nullptr},  // may still become one
      {"GGUF", nullptr},
  };
  for (const Foreign& f : files) CheckForeign(f);
}

}  // namespace headlight::testing
