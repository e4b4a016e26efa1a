#include "support.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace headlight::testing {
namespace {

std::string EnvironmentOr(const char* name, std::string fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(fallback);
}

}  // namespace

std::string RepoPath(std::string_view relative) {
  return EnvironmentOr("HEADLIGHT_SOURCE_DIR", HEADLIGHT_SOURCE_DIR) + "/" + std::string(relative);
}

std::optional<std::string> SharedPath(std::string_view relative) {
  std::string path =
      EnvironmentOr("HEADLIGHT_SHARED", RepoPath("../shared")) + "/" + std::string(relative);
  if (!std::ifstream(path)) return std::nullopt;
  return path;
}

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO("path ", path);
  REQUIRE(file.good());
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

std::string Detail(const Error& error, std::string_view name) {
  for (const auto& [key, value] : error.details()) {
    if (key == name) return value;
  }
  return "";
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace headlight::testing
