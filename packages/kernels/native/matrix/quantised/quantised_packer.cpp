#include "quantised_packer.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "blocks.h"

namespace octavo {

namespace {

FormatId format_of(WeightType type, bool zeros) {
    switch (type) {
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
        case WeightType::q4_1:
            return FormatId::q4_1;
        case WeightType::q5_1:
            return FormatId::q5_1;
        case WeightType::q2_k:
            return FormatId::q2_k;
        case WeightType::q3_k:
            return FormatId::q3_k;
        case WeightType::iq4_nl:
            return FormatId::iq4_nl;
        case WeightType::iq4_xs:
            return FormatId::iq4_xs;
        case WeightType::mxfp4:
            return FormatId::mxfp4;
        case WeightType::int8:
            return FormatId::int8;
        case WeightType::int2:
            return FormatId::int2_zeros;
        case WeightType::int3:
            return FormatId::int3_zeros;
        case WeightType::uint8:
            return FormatId::uint8_zeros;
        default:
            return zeros ? FormatId::int4_zeros : FormatId::int4;
    }
}

}  // namespace

/// A panel on its way from its rows to its place.
struct PanelJob {
    PanelRows rows;
    int64_t groups;
    const Format& format;
    PanelView place;

    uint8_t* codes(int64_t group) const { return const_cast<uint8_t*>(place.codes) + code_offset(format, group); }
    int64_t meta_groups() const { return groups_per_meta(format.scaling, place.groups_per_scale); }
    /// Of the group, or of the super-block or scale that begins with it.
    uint8_t* meta(int64_t group) const { return const_cast<uint8_t*>(place.meta) + meta_offset(format, group / meta_groups()); }
};

namespace {

/// f16 values at the same place of every row.
Halves8 gather_halves(const PanelRows& rows, int64_t at, int first) {
    Halves8 values;
    for (int i = 0; i < 8; ++i) {
        uint16_t half;
        std::memcpy(&half, rows.values[first + i] + at, sizeof half);
        values[i] = half;
    }
    return values;
}

void pack_halves(const PanelRows& rows, int64_t at, uint8_t* out, NonFiniteF16& check) {
    for (int part = 0; part < 2; ++part) {
        const Halves8 values = gather_halves(rows, at, 8 * part);
        check.see(part, values);
        store(out + 16 * part, values);
    }
}

/// Where the f16 values of a block stand that every weight of it is multiplied by or taken from.
template <int64_t... At>
struct Halves {
    /// One value of each row after the other.
    static void pack(const PanelRows& rows, int64_t block, uint8_t* out, NonFiniteF16& check) {
        ((pack_halves(rows, block + At, out, check), out += 2 * kPanelRows), ...);
    }
    static bool all_finite(const uint8_t* row, int64_t blocks, int64_t block_bytes) {
        // An exponent of ones is carried into the sign's place.
        uint32_t carried = 0;
        for (; blocks > 0; --blocks, row += block_bytes) ((carried |= (half_at(row + At) & 0x7c00u) + 0x0400u), ...);
        return (carried & 0x8000u) == 0;
    }

private:
    static uint32_t half_at(const uint8_t* from) {
        uint16_t half;
        std::memcpy(&half, from, sizeof half);
        return half;
    }
};

Words4 gather_floats(const uint8_t* const* rows, int64_t index, int first) {
    Words4 values;
    for (int i = 0; i < 4; ++i) {
        uint32_t bits;
        std::memcpy(&bits, rows[first + i] + 4 * index, sizeof bits);
        values[i] = bits;
    }
    return values;
}

/// Meta of one group, or of the super-block or scale that begins with it. See Scaling for the layouts.
template <class Blocks>
struct HalfMeta {
    using Check = NonFiniteF16;
    using Scales = Halves<0>;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        Scales::pack(job.rows, g * Blocks::kBytes, job.meta(g), check);
    }
};

template <class Blocks>
struct HalfMinMeta {
    using Check = NonFiniteF16;
    using Scales = Halves<0, 2>;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        Scales::pack(job.rows, g * Blocks::kBytes, job.meta(g), check);
    }
};

/// Remembers exponents at which the largest product, 12 * 2^(e - 128), is no number.
class LargeExponents {
public:
    void see(Bytes16 exponents) { bad_ |= reinterpret_cast<Bytes16>(exponents > bytes_of(252)); }
    int first_lane() const {
        for (int lane = 0; lane < kPanelRows; ++lane) {
            if (bad_[lane] != 0) return lane;
        }
        return -1;
    }

private:
    Bytes16 bad_ = {};
};

template <class Blocks>
struct ExponentMeta {
    using Check = LargeExponents;
    using Scales = void;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        Bytes16 exponents;
        for (int lane = 0; lane < kPanelRows; ++lane) exponents[lane] = job.rows.values[lane][g * Blocks::kBytes];
        check.see(exponents);
        store(job.meta(g), exponents);
    }
};

/// Blocks give the scales of a super-block, as `scales(block)`.
template <class Blocks>
struct SuperSingleMeta {
    using Check = NonFiniteF16;
    using Scales = Halves<0>;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        const int64_t at = g / kSuperGroups * Blocks::kBytes;
        uint8_t* out = job.meta(g);
        Scales::pack(job.rows, at, out, check);
        for (int lane = 0; lane < kPanelRows; ++lane) {
            const Bytes16 scales = Blocks::scales(job.rows.values[lane] + at);
            for (int sub = 0; sub < kSuperGroups; ++sub) out[(2 + sub) * kPanelRows + lane] = scales[sub];
        }
    }
};

template <class Blocks>
struct SuperHalfMinimaMeta {
    using Check = NonFiniteF16;
    using Scales = Halves<Blocks::kScaleAt, Blocks::kScaleAt + 2>;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        const int64_t at = g / kSuperGroups * Blocks::kBytes;
        uint8_t* out = job.meta(g);
        Scales::pack(job.rows, at, out, check);
        store_transposed_bytes([&](int lane) { return Blocks::scales(job.rows.values[lane] + at); }, out + 4 * kPanelRows);
    }
};

template <class Blocks>
struct SuperMinMeta {
    using Check = NonFiniteF16;
    using Scales = Halves<0, 2>;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        const int64_t at = g / kSuperGroups * Blocks::kBytes;
        uint8_t* out = job.meta(g);
        Scales::pack(job.rows, at, out, check);
        store_transposed_bytes([&](int lane) { return super_scales(job.rows.values[lane] + at + 4); }, out + 4 * kPanelRows);
    }
};

template <class Blocks>
struct SuperHalvesMeta {
    using Check = NonFiniteF16;
    using Scales = Halves<Blocks::kBytes - 2>;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        const int64_t at = g / kSuperGroups * Blocks::kBytes;
        uint8_t* out = job.meta(g);
        Scales::pack(job.rows, at, out, check);
        store_transposed_bytes([&](int lane) { return Blocks::scales(job.rows.values[lane] + at); }, out + 2 * kPanelRows);
    }
};

/// What is checked is the largest product of the scale: no code is farther than `span` from its zero.
void pack_scales(const PanelJob& job, int64_t index, const float* span, uint8_t* out, NonFiniteF32& check) {
    using Floats4 = float __attribute__((vector_size(16)));
    for (int part = 0; part < 4; ++part) {
        const Words4 scales = gather_floats(job.rows.scales, index, 4 * part);
        const Floats4 largest = reinterpret_cast<Floats4>(scales) * load_as<Floats4>(reinterpret_cast<const uint8_t*>(span + 4 * part));
        check.see(part, reinterpret_cast<Words4>(largest));
        store(out + 16 * part, scales);
    }
}

template <class Blocks>
struct SingleMeta {
    using Check = NonFiniteF32;
    using Scales = void;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        float span[kPanelRows];
        for (float& one : span) one = 128.0f;
        pack_scales(job, g / job.meta_groups(), span, job.meta(g), check);
    }
};

template <class Blocks>
struct SingleZerosMeta {
    using Check = NonFiniteF32;
    using Scales = void;
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        const int64_t index = g / job.meta_groups();
        float span[kPanelRows];
        float zeros[kPanelRows];
        for (int lane = 0; lane < kPanelRows; ++lane) {
            zeros[lane] = Blocks::kDefaultZero;
            if (job.rows.zeros[lane] != nullptr) std::memcpy(&zeros[lane], job.rows.zeros[lane] + 4 * index, sizeof(float));
            span[lane] = static_cast<float>(1 << Blocks::kBits) + std::fabs(zeros[lane]);
        }
        uint8_t* out = job.meta(g);
        pack_scales(job, index, span, out, check);
        std::memcpy(out + 4 * kPanelRows, zeros, sizeof zeros);
    }
};

/// Planes of one group, see group_code_bytes.
template <class Blocks>
void pack_codes(const PanelJob& job, int64_t g) {
    uint8_t* out = job.codes(g);
    const uint8_t* const* rows = job.rows.values;
    if constexpr (Blocks::kBits == 8) {
        for (int half = 0; half < 2; ++half) {
            Tile::of([&](int lane) { return Blocks::bytes(rows[lane], g, half); }).store_to(out + 256 * half);
        }
    } else if constexpr (Blocks::kBits < 4) {
        Tile::of([&](int lane) { return Blocks::low(rows[lane], g).low; }).store_merged(2, out);
        Tile::of([&](int lane) { return Blocks::low(rows[lane], g).high; }).store_merged(2, out + 64);
    } else {
        Tile::of([&](int lane) { return Blocks::pairs(rows[lane], g); }).store_to(out);
    }
    if constexpr (Blocks::kBits == 3 || Blocks::kBits == 5) {
        constexpr int64_t kPlane = 64 * (Blocks::kBits - 1);
        const auto bits = [&](int lane) {
            const ColumnBits high = Blocks::high(rows[lane], g);
            return join_nibbles(high.low, high.high);
        };
        Tile::of(bits).store_merged(1, out + kPlane);
    }
    if constexpr (Blocks::kBits == 6) {
        Tile::of([&](int lane) { return Blocks::high(rows[lane], g).low; }).store_merged(2, out + 256);
        Tile::of([&](int lane) { return Blocks::high(rows[lane], g).high; }).store_merged(2, out + 320);
    }
}

/// The first row that is not finite, -1 when all are.
template <class Blocks, template <class> class Meta>
int pack_panel(const PanelJob& job) {
    typename Meta<Blocks>::Check check;
    const int64_t meta_groups = job.meta_groups();
    for (int64_t first = 0; first < job.groups; first += meta_groups) {
        Meta<Blocks>::pack(job, first, check);
        for (int64_t g = first; g < first + meta_groups; ++g) pack_codes<Blocks>(job, g);
    }
    return check.first_lane();
}

template <class Blocks, template <class> class Meta>
constexpr QuantisedPacking packing() {
    using Scales = typename Meta<Blocks>::Scales;
    if constexpr (std::is_void_v<Scales>) {
        return {pack_panel<Blocks, Meta>, nullptr};
    } else {
        return {pack_panel<Blocks, Meta>,
                [](const uint8_t* row, int64_t blocks) { return Scales::all_finite(row, blocks, Blocks::kBytes); }};
    }
}

QuantisedPacking packing_of(FormatId format) {
    switch (format) {
        case FormatId::q4_0:
            return packing<BlocksQ4_0, HalfMeta>();
        case FormatId::q5_0:
            return packing<BlocksQ5_0, HalfMeta>();
        case FormatId::q8_0:
            return packing<BlocksQ8_0, HalfMeta>();
        case FormatId::q4_k:
            return packing<BlocksQ4_K, SuperMinMeta>();
        case FormatId::q5_k:
            return packing<BlocksQ5_K, SuperMinMeta>();
        case FormatId::q6_k:
            return packing<BlocksQ6_K, SuperHalvesMeta>();
        case FormatId::int8:
            return packing<BlocksInt8, SingleMeta>();
        case FormatId::int4:
            return packing<BlocksInt4, SingleMeta>();
        case FormatId::q4_1:
            return packing<BlocksQ4_1, HalfMinMeta>();
        case FormatId::q5_1:
            return packing<BlocksQ5_1, HalfMinMeta>();
        case FormatId::q2_k:
            return packing<BlocksQ2_K, SuperHalfMinimaMeta>();
        case FormatId::q3_k:
            return packing<BlocksQ3_K, SuperHalvesMeta>();
        case FormatId::iq4_nl:
            return packing<BlocksQ4_0, HalfMeta>();
        case FormatId::iq4_xs:
            return packing<BlocksIQ4_XS, SuperSingleMeta>();
        case FormatId::mxfp4:
            return packing<BlocksMXFP4, ExponentMeta>();
        case FormatId::int2_zeros:
            return packing<BlocksInt2, SingleZerosMeta>();
        case FormatId::int3_zeros:
            return packing<BlocksInt3, SingleZerosMeta>();
        case FormatId::uint8_zeros:
            return packing<BlocksUint8, SingleZerosMeta>();
        case FormatId::int4_zeros:
            break;
    }
    return packing<BlocksInt4, SingleZerosMeta>();
}

}  // namespace

QuantisedPanels quantised_panels(WeightType type, bool zeros, int64_t rows, int64_t cols, int64_t group) {
    QuantisedPanels panels{format_of(type, zeros), rows, cols, 1, 0, AlignedMemory()};
    const Format& format = panels.traits();
    if (format.scaling == Scaling::single || format.scaling == Scaling::single_zeros) {
        panels.groups_per_scale = group / kGroup;
    }
    const int64_t bytes = kPairPanels * (panels.groups() * group_code_bytes(format.bits) +
                                         panel_meta_bytes(format.scaling, panels.groups(), panels.groups_per_scale));
    panels.pair_bytes = (bytes + 63) / 64 * 64;
    return panels;
}

QuantisedPacker::QuantisedPacker(const std::vector<MatrixSource>& sources)
    : sources_(sources),
      stack_(sources_),
      rows_(stack_),
      shape_(panels()),
      packing_(packing_of(shape_.format)) {}

QuantisedPanels QuantisedPacker::panels() const {
    return quantised_panels(stack_.type(), stack_.any_zeros(), stack_.rows(), stack_.cols(), stack_.group());
}

bool QuantisedPacker::can_check() const {
    const auto is_mapped = [](const MatrixSource& source) { return source.file != nullptr && source.column_order.empty(); };
    return packing_.finite != nullptr && std::all_of(sources_.begin(), sources_.end(), is_mapped);
}

void QuantisedPacker::check(ThreadPool& pool) const {
    const int64_t blocks = shape_.groups() / groups_per_meta(shape_.traits().scaling, 1);
    check_in_files(stack_, [&](const uint8_t* row) { return packing_.finite(row, blocks); }, pool);
}

const uint8_t* QuantisedPacker::source(int64_t panel) const { return stack_.row(panel * kPanelRows).values(); }

int QuantisedPacker::pack(int64_t panel, const PanelView& place) const {
    return packing_.pack({rows_.rows(panel), shape_.groups(), shape_.traits(), place});
}

void QuantisedPacker::pack_pairs(const QuantisedPanels& panels, int64_t begin, int64_t end, ThreadPool& pool) const {
    FiniteCheck check;
    const int64_t grain = std::max<int64_t>(1, rows_.grain() / kPairPanels);
    pool.parallel_for(end - begin, grain, [&](int64_t from, int64_t to, int) {
        const int64_t first = (begin + from) * kPairPanels;
        const int64_t last = std::min((begin + to) * kPairPanels, panels.panels());
        for (int64_t i = first; i < last; ++i) {
            const int bad = pack(i, panels.panel(i));
            if (bad >= 0) check.found(i * kPanelRows + bad);
        }
        rows_.release(first, last);
    });
    check.require(stack_);
}

}  // namespace octavo
