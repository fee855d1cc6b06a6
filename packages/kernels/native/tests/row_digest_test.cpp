// Digests against values of the reference implementation, at any alignment and of every length around its strides.
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "../program/row_digest.h"
#include "support/check.h"

namespace octavo::test {

namespace {

void check_published_values() {
    const auto digest = [](const char* text) { return xxhash64(text, std::strlen(text)); };
    CHECK(digest("") == 0xef46db3751d8e999ull);
    CHECK(digest("a") == 0xd24ec4f1a98c6e5bull);
    CHECK(digest("abc") == 0x44bc2cf5ad770999ull);
    CHECK(digest("Call me Ishmael. Some years ago--never mind how long precisely-") == 0x02a2e85470d6fd96ull);
}

void check_every_bit_of_every_length_matters() {
    const size_t longest = quick() ? 70 : 200;
    for (size_t size = 1; size <= longest; size++) {
        // Allocated at exactly this size, so that a sanitizer catches a read beyond it.
        std::vector<uint8_t> bytes(size);
        for (size_t i = 0; i < size; i++) bytes[i] = static_cast<uint8_t>(i * 37 + size);
        const uint64_t digest = xxhash64(bytes.data(), size);
        std::vector<uint8_t> shifted(size + 1);
        std::memcpy(shifted.data() + 1, bytes.data(), size);
        CHECK(xxhash64(shifted.data() + 1, size) == digest);
        std::set<uint64_t> seen{digest};
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
            CHECK(seen.insert(xxhash64(bytes.data(), size)).second);
            bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
        }
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo::test;
    check_published_values();
    check_every_bit_of_every_length_matters();
    return finish("row_digest_test");
}
