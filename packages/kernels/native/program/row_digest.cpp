#include "row_digest.h"

#include <cstring>

namespace octavo {

namespace {

constexpr uint64_t prime1 = 0x9E3779B185EBCA87ull;
constexpr uint64_t prime2 = 0xC2B2AE3D27D4EB4Full;
constexpr uint64_t prime3 = 0x165667B19E3779F9ull;
constexpr uint64_t prime4 = 0x85EBCA77C2B2AE63ull;
constexpr uint64_t prime5 = 0x27D4EB2F165667C5ull;

constexpr uint64_t rotate_left(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

template <typename T>
T read(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

constexpr uint64_t take(uint64_t lane, uint64_t input) { return rotate_left(lane + input * prime2, 31) * prime1; }

constexpr uint64_t merge(uint64_t digest, uint64_t lane) { return (digest ^ take(0, lane)) * prime1 + prime4; }

}  // namespace

uint64_t xxhash64(const void* data, size_t size) {
    const uint8_t* at = static_cast<const uint8_t*>(data);
    const uint8_t* const end = at + size;
    uint64_t digest = prime5;
    if (size >= 32) {
        uint64_t lanes[4] = {prime1 + prime2, prime2, 0, 0 - prime1};
        for (; end - at >= 32; at += 32) {
            for (int lane = 0; lane < 4; lane++) lanes[lane] = take(lanes[lane], read<uint64_t>(at + 8 * lane));
        }
        digest = rotate_left(lanes[0], 1) + rotate_left(lanes[1], 7) + rotate_left(lanes[2], 12) + rotate_left(lanes[3], 18);
        for (const uint64_t lane : lanes) digest = merge(digest, lane);
    }
    digest += size;
    for (; end - at >= 8; at += 8) digest = rotate_left(digest ^ take(0, read<uint64_t>(at)), 27) * prime1 + prime4;
    if (end - at >= 4) {
        digest = rotate_left(digest ^ read<uint32_t>(at) * prime1, 23) * prime2 + prime3;
        at += 4;
    }
    for (; at != end; at++) digest = rotate_left(digest ^ *at * prime5, 11) * prime1;
    digest = (digest ^ digest >> 33) * prime2;
    digest = (digest ^ digest >> 29) * prime3;
    return digest ^ digest >> 32;
}

}  // namespace octavo
