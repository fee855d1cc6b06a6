#include "source.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "layout.h"

namespace octavo {

namespace {

// Sizes and field offsets of GGUF blocks (ggml-common.h).
constexpr int64_t kSuperColumns = kGroup * kSuperGroups;
constexpr int64_t kQ4_0Bytes = 18;   // f16 d, 16 x nibble pairs (i, i + 16)
constexpr int64_t kQ5_0Bytes = 22;   // f16 d, u32 fifth bits, 16 x nibble pairs
constexpr int64_t kQ8_0Bytes = 34;   // f16 d, 32 x i8
constexpr int64_t kQ4_KBytes = 144;  // f16 d, f16 dmin, 12 scale bytes, 128 x nibble pairs (i, i + 32 of 64)
constexpr int64_t kQ5_KBytes = 176;  // f16 d, f16 dmin, 12 scale bytes, 32 fifth-bit bytes, 128 x nibble pairs
constexpr int64_t kQ6_KBytes = 210;  // 128 low nibble pairs, 64 x high bits, 16 x i8 scales, f16 d

[[noreturn]] void fail(const MatrixSource& source, const std::string& what) {
    throw std::runtime_error("tensor " + source.name + ": " + what);
}

int64_t column_unit(WeightType type) {
    switch (type) {
        case WeightType::f32:
        case WeightType::f16:
        case WeightType::bf16:
            return 1;
        case WeightType::q4_k:
        case WeightType::q5_k:
        case WeightType::q6_k:
            return kSuperColumns;
        default:
            return kGroup;
    }
}

void check(const MatrixSource& source, const MatrixSource& first) {
    if (source.rows < 1 || source.cols < 1 || source.values == nullptr) fail(source, "is empty");
    if (source.type != first.type || source.cols != first.cols || source.group != first.group) {
        fail(source, "cannot be stacked on " + first.name + ": type, columns or group size differ");
    }
    if (source.cols % column_unit(source.type) != 0) {
        fail(source, std::string(weight_type_name(source.type)) + " needs columns in multiples of " +
                         std::to_string(column_unit(source.type)) + ", not " + std::to_string(source.cols));
    }
    if (source.type == WeightType::int8 || source.type == WeightType::int4) {
        if (source.scales == nullptr) fail(source, "has no scales");
        if (source.group < kGroup || source.group % kGroup != 0 || source.cols % source.group != 0) {
            fail(source, "group size " + std::to_string(source.group) + " is not a multiple of 32 that divides " +
                             std::to_string(source.cols) + " columns");
        }
    }
}

void decode_q6_k(const uint8_t* block, int group, uint8_t* codes) {
    // Each half of 128 columns: 64 bytes of nibbles, 32 bytes of high bits; its groups 0, 1 are low nibbles, 2, 3 high ones.
    const int quarter = group % 4;
    const uint8_t* nibbles = block + group / 4 * 64 + quarter % 2 * 32;
    const uint8_t* high = block + 128 + group / 4 * 32;
    for (int i = 0; i < kGroup; ++i) {
        const int low = quarter < 2 ? nibbles[i] & 0x0f : nibbles[i] >> 4;
        codes[i] = static_cast<uint8_t>(low | (high[i] >> (2 * quarter) & 3) << 4);
    }
}

}  // namespace

const char* weight_type_name(WeightType type) {
    static constexpr const char* kNames[] = {"f32",  "f16",  "bf16", "q4_0", "q5_0", "q8_0",
                                             "q4_k", "q5_k", "q6_k", "int8", "int4"};
    return kNames[static_cast<int>(type)];
}

int64_t source_row_bytes(WeightType type, int64_t cols) {
    switch (type) {
        case WeightType::f32:
            return cols * 4;
        case WeightType::f16:
        case WeightType::bf16:
            return cols * 2;
        case WeightType::q4_0:
            return cols / kGroup * kQ4_0Bytes;
        case WeightType::q5_0:
            return cols / kGroup * kQ5_0Bytes;
        case WeightType::q8_0:
            return cols / kGroup * kQ8_0Bytes;
        case WeightType::q4_k:
            return cols / kSuperColumns * kQ4_KBytes;
        case WeightType::q5_k:
            return cols / kSuperColumns * kQ5_KBytes;
        case WeightType::q6_k:
            return cols / kSuperColumns * kQ6_KBytes;
        case WeightType::int8:
            return cols;
        case WeightType::int4:
            return cols / 2;
    }
    return 0;
}

void decode_codes(WeightType type, const uint8_t* row, int64_t group, uint8_t codes[32]) {
    const int sub = static_cast<int>(group % kSuperGroups);
    const int64_t super = group / kSuperGroups;
    switch (type) {
        case WeightType::q4_0: {
            const uint8_t* nibbles = row + group * kQ4_0Bytes + 2;
            for (int i = 0; i < 16; ++i) codes[i] = nibbles[i] & 0x0f;
            for (int i = 0; i < 16; ++i) codes[i + 16] = nibbles[i] >> 4;
            break;
        }
        case WeightType::q5_0: {
            const uint8_t* block = row + group * kQ5_0Bytes;
            const uint8_t* nibbles = block + 6;
            uint32_t high;
            std::memcpy(&high, block + 2, sizeof high);
            for (int i = 0; i < 16; ++i) {
                codes[i] = static_cast<uint8_t>((nibbles[i] & 0x0f) | (high >> i & 1) << 4);
                codes[i + 16] = static_cast<uint8_t>(nibbles[i] >> 4 | (high >> (i + 16) & 1) << 4);
            }
            break;
        }
        case WeightType::q8_0: {
            const uint8_t* values = row + group * kQ8_0Bytes + 2;
            for (int i = 0; i < kGroup; ++i) codes[i] = values[i] ^ 0x80;
            break;
        }
        case WeightType::q4_k: {
            const uint8_t* nibbles = row + super * kQ4_KBytes + 16 + sub / 2 * 32;
            for (int i = 0; i < kGroup; ++i) codes[i] = sub % 2 == 0 ? nibbles[i] & 0x0f : nibbles[i] >> 4;
            break;
        }
        case WeightType::q5_k: {
            const uint8_t* block = row + super * kQ5_KBytes;
            const uint8_t* high = block + 16;
            const uint8_t* nibbles = block + 48 + sub / 2 * 32;
            for (int i = 0; i < kGroup; ++i) {
                const int low = sub % 2 == 0 ? nibbles[i] & 0x0f : nibbles[i] >> 4;
                codes[i] = static_cast<uint8_t>(low | (high[i] >> sub & 1) << 4);
            }
            break;
        }
        case WeightType::q6_k:
            decode_q6_k(row + super * kQ6_KBytes, sub, codes);
            break;
        case WeightType::int8: {
            const uint8_t* values = row + group * kGroup;
            for (int i = 0; i < kGroup; ++i) codes[i] = values[i] ^ 0x80;
            break;
        }
        case WeightType::int4: {
            const uint8_t* nibbles = row + group * (kGroup / 2);
            for (int i = 0; i < 16; ++i) {
                codes[2 * i] = nibbles[i] & 0x0f;
                codes[2 * i + 1] = nibbles[i] >> 4;
            }
            break;
        }
        default:
            break;
    }
}

void decode_super_scale(const uint8_t packed[12], int group, uint8_t& scale, uint8_t& minimum) {
    if (group < 4) {
        scale = packed[group] & 63;
        minimum = packed[group + 4] & 63;
    } else {
        scale = static_cast<uint8_t>((packed[group + 4] & 0x0f) | packed[group - 4] >> 6 << 4);
        minimum = static_cast<uint8_t>(packed[group + 4] >> 4 | packed[group] >> 6 << 4);
    }
}

SourceStack::SourceStack(const std::vector<MatrixSource>& sources) : sources_(sources) {
    if (sources.empty()) throw std::runtime_error("a matrix needs at least one source");
    for (const MatrixSource& source : sources) {
        check(source, sources.front());
        rows_ += source.rows;
        ends_.push_back(rows_);
    }
}

bool SourceStack::any_zeros() const {
    return std::any_of(sources_.begin(), sources_.end(), [](const MatrixSource& source) { return source.zeros != nullptr; });
}

SourceStack::Row SourceStack::row(int64_t index) const {
    const size_t at = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    const MatrixSource& source = sources_[at];
    return {&source, index - (ends_[at] - source.rows)};
}

void FiniteCheck::require(const SourceStack& stack) const {
    const int64_t row = first_bad_row_.load(std::memory_order_relaxed);
    if (row == INT64_MAX) return;
    const SourceStack::Row at = stack.row(row);
    fail(*at.source, "row " + std::to_string(at.index) + " holds a weight or a scale that is not finite");
}

}  // namespace octavo
