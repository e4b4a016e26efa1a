// Says what a file that is not GGUF looks like, from its first bytes: users hand over error pages,
// archives and checkpoints of other formats, and "bad magic" would not tell them. For error
// messages only.
#ifndef HEADLIGHT_GGUF_GGUF_FOREIGN_H_
#define HEADLIGHT_GGUF_GGUF_FOREIGN_H_

#include <string>
#include <string_view>

namespace headlight {

// "an HTML page (...)": a noun phrase with what to do about it. `head`: the first kSniffBytes
// bytes, or all of a shorter file.
std::string DescribeForeignFile(std::string_view head);

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_GGUF_FOREIGN_H_
