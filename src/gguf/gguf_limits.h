// Every limit of the GGUF reader, each with the largest honest use and the attack or slip that it
// stops. A header that exceeds one is refused before anything is allocated for it.
#ifndef HEADLIGHT_GGUF_GGUF_LIMITS_H_
#define HEADLIGHT_GGUF_GGUF_LIMITS_H_

#include <cstdint>

namespace headlight {

inline constexpr uint32_t kGgufMinVersion =
    2;  // version 1 had 32-bit counts and was gone within weeks
inline constexpr uint32_t kGgufMaxVersion = 3;

// Key-value pairs. Real files hold 20 to 100, model merges a few hundred; 14 file bytes can claim a
// map node of about 200 bytes, so this also bounds what a header of nothing but tiny pairs can make
// us allocate (13 MB).
inline constexpr uint64_t kMaxKeyValues = 1u << 16;

// Tensors. The largest open models hold about 2,000; mixtures with one tensor an expert reach
// 20,000.
inline constexpr uint64_t kMaxTensors = 1u << 16;

// As the format's documentation gives them.
inline constexpr uint64_t kMaxKeyBytes = 65535;
inline constexpr uint64_t kMaxTensorNameBytes = 64;
inline constexpr uint32_t kMaxDims = 4;

// One string. Chat templates are some 10 KB; a whole tokenizer.json, which some files embed,
// reaches 35 MB.
inline constexpr uint64_t kMaxStringBytes = 64u << 20;

// Elements of one array. The largest vocabularies have 262,144 tokens and about twice as many
// merges.
inline constexpr uint64_t kMaxArrayCount = 1u << 24;

// The whole header. A 262k vocabulary with merges and scores is about 20 MB. Bounds the reader's
// memory, and keeps the offsets of GgufStringArray within 32 bits.
inline constexpr uint64_t kMaxHeaderBytes = 256u << 20;
static_assert(kMaxHeaderBytes < UINT32_MAX);

// general.alignment: 32 unless the file says otherwise. A multiple of 8 by the documentation, a
// power of two in every writer; 64 KiB is the largest page size in use, and a larger value would
// only be a way to hide data in padding.
inline constexpr uint64_t kDefaultAlignment = 32;
inline constexpr uint64_t kMinAlignment = 8;
inline constexpr uint64_t kMaxAlignment = 64u << 10;

// File offsets reach JavaScript as doubles: integers are exact up to 2^53.
inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 53;

// Elements of one tensor: at 8 bytes each, the widest type of the format, still within
// kMaxFileBytes.
inline constexpr uint64_t kMaxElements = uint64_t{1} << 50;

// Bytes looked at to say what a file that is not GGUF looks like: a zip entry's name starts at
// byte 30.
inline constexpr uint64_t kSniffBytes = 64;

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_GGUF_LIMITS_H_
