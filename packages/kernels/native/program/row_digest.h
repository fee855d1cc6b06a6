#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

/// Digest of `size` bytes: XXH64 with seed 0 (Collet, xxHash fast digest algorithm, doc/xxhash_spec.md), little-endian.
/// Tells rows of logits apart by their bits at the speed of memory; says nothing about who wrote them.
uint64_t xxhash64(const void* data, size_t size);

}  // namespace octavo
