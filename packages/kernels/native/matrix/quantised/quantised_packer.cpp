#include "quantised_packer.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "blocks.h"

namespace octavo {

/// A panel to be packed: its rows, and where it goes.
struct PanelJob {
    PanelRows rows;
    int64_t groups;
    const Format& format;
    PanelView place;

    uint8_t* codes(int64_t group) const { return const_cast<uint8_t*>(place.codes) + code_offset(format, group); }
    int64_t meta_groups() const { return groups_per_meta(format.scaling, place.groups_per_scale); }
    /// Metadata of the group, or of the super-block or scale that begins with it.
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

}  // namespace

template <int64_t... At>
struct Halves {
    /// One value of each row after the other; returns the end of them.
    static uint8_t* pack(const PanelRows& rows, int64_t block, uint8_t* out, NonFiniteF16& check) {
        ((pack_halves(rows, block + At, out, check), out += 2 * kPanelRows), ...);
        return out;
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

namespace {

Words4 gather_floats(const uint8_t* const* rows, int64_t index, int first) {
    Words4 values;
    for (int i = 0; i < 4; ++i) {
        uint32_t bits;
        std::memcpy(&bits, rows[first + i] + 4 * index, sizeof bits);
        values[i] = bits;
    }
    return values;
}

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

/// What of one format goes into the panel beside its codes.
template <int Id>
struct Meta {
    static constexpr Scaling kScaling = kFormats[Id].scaling;
    using Block = Blocks<kFormats[Id].type>;
    static constexpr bool kHasFloats = has_float_scales(kScaling);
    static constexpr bool kHasHalves = !kHasFloats && kScaling != Scaling::exponents;
    using Check = std::conditional_t<kHasFloats, NonFiniteF32, std::conditional_t<kHasHalves, NonFiniteF16, LargeExponents>>;

    /// Packs group g, or the super-block or scale that begins with it. See Scaling for the layouts.
    static void pack(const PanelJob& job, int64_t g, Check& check) {
        uint8_t* out = job.meta(g);
        const int64_t block = g / groups_per_meta(kScaling, 1) * Block::kBytes;
        if constexpr (kHasFloats) {
            pack_floats(job, g / job.meta_groups(), out, check);
        } else if constexpr (kScaling == Scaling::exponents) {
            Bytes16 exponents;
            for (int lane = 0; lane < kPanelRows; ++lane) exponents[lane] = job.rows.values[lane][block];
            check.see(exponents);
            store(out, exponents);
        } else {
            out = Block::Scales::pack(job.rows, block, out, check);
            if constexpr (kScaling == Scaling::super_single) {
                for (int lane = 0; lane < kPanelRows; ++lane) {
                    const Bytes16 scales = Block::scales(job.rows.values[lane] + block);
                    for (int sub = 0; sub < kSuperGroups; ++sub) out[sub * kPanelRows + lane] = scales[sub];
                }
            } else if constexpr (groups_per_meta(kScaling, 1) == kSuperGroups) {
                store_transposed_bytes([&](int lane) { return Block::scales(job.rows.values[lane] + block); }, out);
            }
        }
    }

private:
    static void pack_floats(const PanelJob& job, int64_t index, uint8_t* out, NonFiniteF32& check) {
        float span[kPanelRows];
        float zeros[kPanelRows];
        for (int lane = 0; lane < kPanelRows; ++lane) {
            span[lane] = 128.0f;
            if constexpr (kScaling == Scaling::single_zeros) {
                zeros[lane] = Block::kDefaultZero;
                if (job.rows.zeros[lane] != nullptr) std::memcpy(&zeros[lane], job.rows.zeros[lane] + 4 * index, sizeof(float));
                span[lane] = static_cast<float>(1 << kFormats[Id].bits) + std::fabs(zeros[lane]);
            }
        }
        pack_scales(job, index, span, out, check);
        if constexpr (kScaling == Scaling::single_zeros) std::memcpy(out + 4 * kPanelRows, zeros, sizeof zeros);
    }
};

/// Planes of one group, see group_code_bytes.
template <int Id>
void pack_codes(const PanelJob& job, int64_t g) {
    using Block = Blocks<kFormats[Id].type>;
    constexpr int kBits = kFormats[Id].bits;
    uint8_t* out = job.codes(g);
    const uint8_t* const* rows = job.rows.values;
    if constexpr (kBits == 8) {
        for (int half = 0; half < 2; ++half) {
            Tile::of([&](int lane) { return Block::bytes(rows[lane], g, half); }).store_to(out + 256 * half);
        }
    } else if constexpr (kBits < 4) {
        Tile::of([&](int lane) { return Block::low(rows[lane], g).low; }).store_merged(2, out);
        Tile::of([&](int lane) { return Block::low(rows[lane], g).high; }).store_merged(2, out + 64);
    } else {
        Tile::of([&](int lane) { return Block::pairs(rows[lane], g); }).store_to(out);
    }
    if constexpr (kBits == 3 || kBits == 5) {
        constexpr int64_t kPlane = 64 * (kBits - 1);
        const auto bits = [&](int lane) {
            const ColumnBits high = Block::high(rows[lane], g);
            return join_nibbles(high.low, high.high);
        };
        Tile::of(bits).store_merged(1, out + kPlane);
    }
    if constexpr (kBits == 6) {
        Tile::of([&](int lane) { return Block::high(rows[lane], g).low; }).store_merged(2, out + 256);
        Tile::of([&](int lane) { return Block::high(rows[lane], g).high; }).store_merged(2, out + 320);
    }
}

/// The first row that is not finite, -1 when all are.
template <int Id>
int pack_panel(const PanelJob& job) {
    typename Meta<Id>::Check check;
    const int64_t meta_groups = job.meta_groups();
    for (int64_t first = 0; first < job.groups; first += meta_groups) {
        Meta<Id>::pack(job, first, check);
        for (int64_t g = first; g < first + meta_groups; ++g) pack_codes<Id>(job, g);
    }
    return check.first_lane();
}

template <int Id>
bool halves_are_finite(const uint8_t* row, int64_t blocks) {
    using Block = Blocks<kFormats[Id].type>;
    return Block::Scales::all_finite(row, blocks, Block::kBytes);
}

template <int Id>
constexpr QuantisedPacking packing() {
    if constexpr (Meta<Id>::kHasHalves) return {pack_panel<Id>, halves_are_finite<Id>};
    return {pack_panel<Id>, nullptr};
}

template <int... Id>
QuantisedPacking packing_of(int format, std::integer_sequence<int, Id...>) {
    static constexpr QuantisedPacking kAll[] = {packing<Id>()...};
    return kAll[format];
}

}  // namespace

QuantisedPanels quantised_panels(WeightType type, bool zeros, int64_t rows, int64_t cols, int64_t group) {
    QuantisedPanels panels{format_of(type, zeros, group == cols), rows, cols, 1, 0, AlignedMemory()};
    const Format& format = panels.traits();
    if (has_float_scales(format.scaling)) panels.groups_per_scale = group / kGroup;
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
      packing_(packing_of(shape_.format, std::make_integer_sequence<int, kNumFormats>())) {}

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
