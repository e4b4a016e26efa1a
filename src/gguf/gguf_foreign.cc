#include "gguf/gguf_foreign.h"

#include <algorithm>
#include <cstdint>

#include "gguf/gguf_error.h"
#include "gguf/little_endian.h"

namespace headlight {
namespace {

using std::string_view_literals::operator""sv;

struct Signature {
  std::string_view magic;
  const char* description;
};

constexpr const char* kConvert = "; convert it to GGUF first";
// Bytes may have come from a server or from a disk.
constexpr const char* kCheck = "; check the address or the file";

// Longer signatures first where one begins with another.
constexpr Signature kSignatures[] = {
    {"\x1F\x8B"sv, "a gzip archive; unpack it first"},
    {"PK\x03\x04"sv,
     "a zip archive (PyTorch checkpoints are zips too); unpack or convert it to GGUF first"},
    {"\x28\xB5\x2F\xFD"sv, "a zstd archive; unpack it first"},
    {"\xFD"
     "7zXZ\x00"sv,
     "an xz archive; unpack it first"},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive; unpack it first"},
    {"BZh"sv, "a bzip2 archive; unpack it first"},
    {"\x89HDF"sv, "an HDF5 file (Keras weights); convert it to GGUF first"},
    {"\x93NUMPY"sv, "a NumPy array; convert the model to GGUF first"},
    {"\0asm"sv, "a WebAssembly module, not a model; check the address or the file"},
    // The forerunners of GGUF: a little-endian number whose bytes spell the name backwards.
    {"lmgg"sv, "a GGML file, the format before GGUF; convert the model again"},
    {"fmgg"sv, "a GGMF file, a format before GGUF; convert the model again"},
    {"tjgg"sv, "a GGJT file, a format before GGUF; convert the model again"},
    {"algg"sv, "a GGLA adapter, not a model; merge it into its model and convert that to GGUF"},
    {"FUGG"sv, "a GGUF file with the bytes of each word swapped; fetch it again"},
    {"version https://git-lfs"sv,
     "a Git LFS pointer, not the file it points to; fetch the file itself (git lfs pull, or the "
     "download address)"},
};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool StartsWithAnyCase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(),
                                                   [](char a, char b) { return a == Lower(b); });
}

// A header length (8 bytes, far below 2^32) and then JSON.
bool LooksLikeSafetensors(std::string_view head) {
  if (head.size() < 9 || head[8] != '{') return false;
  const auto n_json = LoadLittleEndian<uint64_t>(reinterpret_cast<const uint8_t*>(head.data()));
  return n_json >= 2 && n_json < UINT32_MAX;
}

// Pickle protocols 2 to 5: PROTO opcode, protocol number.
bool LooksLikePickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

bool IsText(std::string_view head) {
  return std::all_of(head.begin(), head.end(),
                     [](char c) { return IsSpace(c) || (c >= 0x20 && c < 0x7F); });
}

}  // namespace

std::string DescribeForeignFile(std::string_view head) {
  if (head.empty()) return "an empty file; check the address or the download";
  if (head.starts_with("PK\x03\x04"sv) && head.find("data.pkl"sv) != std::string_view::npos) {
    return std::string("a PyTorch checkpoint") + kConvert;
  }
  for (const Signature& signature : kSignatures) {
    if (head.starts_with(signature.magic)) return signature.description;
  }
  if (LooksLikeSafetensors(head)) return std::string("a safetensors file") + kConvert;
  if (LooksLikePickle(head))
    return std::string("a Python pickle (a PyTorch checkpoint)") + kConvert;

  std::string_view text = head;
  if (text.starts_with("\xEF\xBB\xBF"sv)) text.remove_prefix(3);  // byte order mark
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  if (StartsWithAnyCase(text, "<!doctype") || StartsWithAnyCase(text, "<html")) {
    return "an HTML page (an error or log-in page of the server?); check the address, it must be "
           "the file's own";
  }
  if (text.starts_with('<'))
    return std::string("an XML document (an error of the server?)") + kCheck;
  if (text.starts_with('{') || text.starts_with('[')) {
    return std::string("JSON text (an error of the server, or a configuration file?)") + kCheck;
  }
  if (IsText(head)) return "text that begins " + Quoted(head) + kCheck;
  return "an unknown format that begins " + Quoted(head.substr(0, 8)) + "; Headlight reads GGUF";
}

}  // namespace headlight
