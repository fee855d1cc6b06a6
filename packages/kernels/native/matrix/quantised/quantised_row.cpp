#include <cstring>
#include <vector>

#include "../../core/half.h"
#include "quantised_packer.h"

namespace octavo {

namespace {

/// Code of (quad, byte) of a packed group, the inverse of the planes that group_code_bytes describes.
int code_at(int bits, const uint8_t* group, int quad, int byte) {
    if (bits == 8) return group[64 * quad + byte];
    if (bits < 4) {
        const int low = group[64 * (quad / 4) + byte] >> (2 * (quad % 4)) & 3;
        return bits == 2 ? low : low | (group[128 + byte] >> quad & 1) << 2;
    }
    const int pair = group[64 * (quad % 4) + byte];
    int code = quad < 4 ? pair & 0x0f : pair >> 4;
    if (bits == 5) code |= (group[256 + byte] >> quad & 1) << 4;
    if (bits == 6) code |= (group[256 + 64 * (quad / 4) + byte] >> (2 * (quad % 4)) & 3) << 4;
    return code;
}

float read_f16(const uint8_t* lanes, int lane) {
    uint16_t half;
    std::memcpy(&half, lanes + 2 * lane, sizeof half);
    return f16_to_f32(half);
}

float read_f32(const uint8_t* lanes, int lane) {
    float value;
    std::memcpy(&value, lanes + 4 * lane, sizeof value);
    return value;
}

/// weight = scale[column / 16] * (code - zero) - minimum[column / 16], rounded as GGUF's own dequantisation rounds.
struct GroupScaling {
    float scale[2];
    float zero;
    float minimum[2];
};

GroupScaling scaling_at(const Format& format, const PanelView& panel, int64_t group, int lane) {
    const uint8_t* unit =
        panel.meta + meta_offset(format, group / groups_per_meta(format.scaling, panel.groups_per_scale));
    const int sub = static_cast<int>(group % kSuperGroups);
    const float zero = static_cast<float>(format.zero);
    switch (format.scaling) {
        case Scaling::half: {
            const float d = read_f16(unit, lane);
            return {{d, d}, zero, {}};
        }
        case Scaling::super_min: {
            const uint8_t* scales = unit + 4 * kPanelRows + sub * kPanelRows;
            const float scale = read_f16(unit, lane) * static_cast<float>(scales[lane]);
            const float minimum =
                read_f16(unit + 2 * kPanelRows, lane) * static_cast<float>(scales[kSuperGroups * kPanelRows + lane]);
            return {{scale, scale}, zero, {minimum, minimum}};
        }
        case Scaling::super_halves: {
            const uint8_t* scales = unit + 2 * kPanelRows + sub * 2 * kPanelRows;
            const float d = read_f16(unit, lane);
            return {{d * static_cast<float>(static_cast<int8_t>(scales[lane])),
                     d * static_cast<float>(static_cast<int8_t>(scales[kPanelRows + lane]))},
                    zero,
                    {}};
        }
        case Scaling::half_min: {
            const float d = read_f16(unit, lane);
            const float minimum = -read_f16(unit + 2 * kPanelRows, lane);
            return {{d, d}, zero, {minimum, minimum}};
        }
        case Scaling::super_single: {
            const float scale = read_f16(unit, lane) * static_cast<float>(static_cast<int8_t>(unit[(2 + sub) * kPanelRows + lane]));
            return {{scale, scale}, zero, {}};
        }
        case Scaling::super_half_minima: {
            const float d = read_f16(unit, lane);
            const float dmin = read_f16(unit + 2 * kPanelRows, lane);
            GroupScaling scaling{{}, zero, {}};
            for (int h = 0; h < 2; ++h) {
                const uint8_t pair = unit[(4 + 2 * sub + h) * kPanelRows + lane];
                scaling.scale[h] = d * static_cast<float>(pair & 15);
                scaling.minimum[h] = dmin * static_cast<float>(pair >> 4);
            }
            return scaling;
        }
        case Scaling::exponents: {
            const uint32_t exponent = unit[lane];
            const float scale = float_from_bits((exponent > 0 ? exponent - 1 : 0) << 23);
            return {{scale, scale}, zero, {}};
        }
        case Scaling::single:
        case Scaling::row: {
            const float scale = read_f32(unit, lane);
            return {{scale, scale}, zero, {}};
        }
        case Scaling::single_zeros: {
            const float scale = read_f32(unit, lane);
            return {{scale, scale}, read_f32(unit + 4 * kPanelRows, lane), {}};
        }
    }
    return {};
}

}  // namespace

void QuantisedMatrix::row(int64_t r, float* out) const {
    const Format& format = panels_.traits();
    PanelView panel = panels_.panel(r / kPanelRows);
    if (!has_panels(r / kPanelRows + 1)) {
        // Kept by the thread, so that steps do not allocate.
        thread_local std::vector<uint8_t> room;
        if (room.size() < static_cast<size_t>(panels_.pair_bytes)) room.resize(static_cast<size_t>(panels_.pair_bytes));
        panel = panels_.panel_of(room.data(), 0);
        packer_->pack(r / kPanelRows, panel);
    }
    const int lane = static_cast<int>(r % kPanelRows);
    const bool has_minimum = format.scaling == Scaling::super_min || format.scaling == Scaling::half_min ||
                             format.scaling == Scaling::super_half_minima;
    for (int64_t g = 0; g < panels_.groups(); ++g, out += kGroup) {
        const uint8_t* codes = panel.codes + code_offset(format, g);
        const GroupScaling scaling = scaling_at(format, panel, g, lane);
        for (int i = 0; i < kGroup; ++i) {
            const int code = code_at(format.bits, codes, i / 4, 4 * lane + i % 4);
            const float value = static_cast<float>(format.table != nullptr ? format.table[code] : code);
            const float scaled = scaling.scale[i / 16] * (value - scaling.zero);
            out[i] = has_minimum ? scaled - scaling.minimum[i / 16] : scaled;
        }
    }
}

}  // namespace octavo
