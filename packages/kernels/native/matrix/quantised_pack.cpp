#include <algorithm>
#include <cmath>
#include <cstring>

#include "../core/half.h"
#include "quantised_matrix.h"

namespace octavo {

namespace {

FormatId format_of(const SourceStack& stack) {
    switch (stack.type()) {
        case WeightType::q4_0:
            return FormatId::q4_0;
        case WeightType::q5_0:
            return FormatId::q5_0;
        case WeightType::q8_0:
            return FormatId::q8_0;
        case WeightType::q4_k:
            return FormatId::q4_k;
        case WeightType::q5_k:
            return FormatId::q5_k;
        case WeightType::q6_k:
            return FormatId::q6_k;
        case WeightType::int8:
            return FormatId::int8;
        default:
            return stack.any_zeros() ? FormatId::int4_zeros : FormatId::int4;
    }
}

/// Where one row of a panel comes from and where its meta goes.
struct RowPacker {
    const SourceStack::Row source;
    const uint8_t* const values;
    const int64_t cols;
    uint8_t* const meta;
    const int lane;
    bool finite = true;

    uint16_t read_scale(const uint8_t* p) {
        uint16_t half;
        std::memcpy(&half, p, sizeof half);
        finite = finite && f16_is_finite(half);
        return half;
    }

    template <class T>
    void put(uint8_t* lanes, T value) {
        std::memcpy(lanes + static_cast<size_t>(lane) * sizeof(T), &value, sizeof value);
    }

    /// Blocks that begin with an f16 scale.
    void pack_half(int64_t block_bytes) {
        for (int64_t g = 0; g < cols / kGroup; ++g) {
            put(meta + g * kHalfMetaBytes, read_scale(values + g * block_bytes));
        }
    }

    void pack_super_min(int64_t block_bytes) {
        for (int64_t s = 0; s < cols / (kGroup * kSuperGroups); ++s) {
            const uint8_t* block = values + s * block_bytes;
            uint8_t* out = meta + s * kSuperMinMetaBytes;
            put(out, read_scale(block));
            put(out + 2 * kPanelRows, read_scale(block + 2));
            uint8_t* scales = out + 4 * kPanelRows;
            for (int g = 0; g < kSuperGroups; ++g) {
                uint8_t scale;
                uint8_t minimum;
                decode_super_scale(block + 4, g, scale, minimum);
                put(scales + g * kPanelRows, scale);
                put(scales + (kSuperGroups + g) * kPanelRows, minimum);
            }
        }
    }

    void pack_super_halves(int64_t block_bytes) {
        for (int64_t s = 0; s < cols / (kGroup * kSuperGroups); ++s) {
            const uint8_t* block = values + s * block_bytes;
            uint8_t* out = meta + s * kSuperHalvesMetaBytes;
            put(out, read_scale(block + block_bytes - 2));
            const uint8_t* scales = block + block_bytes - 2 - 2 * kSuperGroups;
            for (int h = 0; h < 2 * kSuperGroups; ++h) put(out + 2 * kPanelRows + h * kPanelRows, scales[h]);
        }
    }

    void pack_single(bool with_zeros) {
        const MatrixSource& from = *source.source;
        const int64_t scales_per_row = cols / from.group;
        const int64_t stride = with_zeros ? kSingleZerosMetaBytes : kSingleMetaBytes;
        for (int64_t i = 0; i < scales_per_row; ++i) {
            const int64_t at = (source.index * scales_per_row + i) * 4;
            float scale;
            std::memcpy(&scale, from.scales + at, sizeof scale);
            float zero = 8.0f;
            if (from.zeros != nullptr) std::memcpy(&zero, from.zeros + at, sizeof zero);
            // No code is farther than this from its zero.
            const float span = with_zeros ? 16.0f + std::fabs(zero) : 128.0f;
            finite = finite && f32_is_finite(scale * span);
            put(meta + i * stride, scale);
            if (with_zeros) put(meta + i * stride + 4 * kPanelRows, zero);
        }
    }

    void pack(Scaling scaling, int64_t block_bytes) {
        switch (scaling) {
            case Scaling::half:
                return pack_half(block_bytes);
            case Scaling::super_min:
                return pack_super_min(block_bytes);
            case Scaling::super_halves:
                return pack_super_halves(block_bytes);
            case Scaling::single:
                return pack_single(false);
            case Scaling::single_zeros:
                return pack_single(true);
        }
    }
};

/// Planes of one group from its codes in dot-product order, see group_code_bytes.
void compress(int bits, const uint8_t codes[kGroupCodes], uint8_t* out) {
    if (bits == 8) {
        std::memcpy(out, codes, kGroupCodes);
        return;
    }
    for (int i = 0; i < 256; ++i) out[i] = static_cast<uint8_t>((codes[i] & 0x0f) | codes[i + 256] << 4);
    if (bits == 5) {
        for (int i = 0; i < 64; ++i) {
            int plane = 0;
            for (int j = 0; j < 8; ++j) plane |= (codes[64 * j + i] >> 4 & 1) << j;
            out[256 + i] = static_cast<uint8_t>(plane);
        }
    }
    if (bits == 6) {
        for (int p = 0; p < 2; ++p) {
            for (int i = 0; i < 64; ++i) {
                int plane = 0;
                for (int t = 0; t < 4; ++t) plane |= (codes[256 * p + 64 * t + i] >> 4 & 3) << (2 * t);
                out[256 + 64 * p + i] = static_cast<uint8_t>(plane);
            }
        }
    }
}

int64_t block_columns(Scaling scaling) {
    return scaling == Scaling::super_min || scaling == Scaling::super_halves ? kGroup * kSuperGroups : kGroup;
}

void pack_panel(const SourceStack& stack, const QuantisedPanels& panels, int64_t index, FiniteCheck& check) {
    const Format& format = panels.traits();
    const PanelView view = panels.panel(index);
    uint8_t* codes_out = const_cast<uint8_t*>(view.codes);
    uint8_t* meta_out = const_cast<uint8_t*>(view.meta);
    const int64_t block_bytes = source_row_bytes(stack.type(), block_columns(format.scaling));
    const int num_rows = static_cast<int>(std::min<int64_t>(kPanelRows, panels.rows - index * kPanelRows));

    const uint8_t* rows[kPanelRows];
    for (int lane = 0; lane < num_rows; ++lane) {
        const SourceStack::Row source = stack.row(index * kPanelRows + lane);
        rows[lane] = source.values();
        RowPacker packer{source, rows[lane], panels.cols, meta_out, lane};
        packer.pack(format.scaling, block_bytes);
        if (!packer.finite) check.found(index * kPanelRows + lane);
    }

    uint8_t codes[kGroupCodes] = {};
    for (int64_t g = 0; g < panels.groups(); ++g) {
        for (int lane = 0; lane < num_rows; ++lane) {
            uint8_t row_codes[kGroup];
            decode_codes(stack.type(), rows[lane], g, row_codes);
            for (int j = 0; j < 8; ++j) std::memcpy(codes + 64 * j + 4 * lane, row_codes + 4 * j, 4);
        }
        compress(format.bits, codes, codes_out + g * group_code_bytes(format.bits));
    }
}

}  // namespace

QuantisedPanels pack_quantised(const SourceStack& stack, ThreadPool& pool) {
    QuantisedPanels panels{format_of(stack), stack.rows(), stack.cols(), 1, 0, AlignedMemory()};
    const Format& format = panels.traits();
    if (format.scaling == Scaling::single || format.scaling == Scaling::single_zeros) {
        panels.groups_per_scale = stack.group() / kGroup;
    }
    const int64_t bytes = panels.groups() * group_code_bytes(format.bits) +
                          panel_meta_bytes(format.scaling, panels.groups(), panels.groups_per_scale);
    panels.panel_stride = (bytes + 63) / 64 * 64;
    panels.memory = AlignedMemory(static_cast<size_t>(panels.panels() * panels.panel_stride));

    FiniteCheck check;
    pool.parallel_for(panels.panels(), 4, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) pack_panel(stack, panels, i, check);
    });
    check.require(stack);
    return panels;
}

}  // namespace octavo
