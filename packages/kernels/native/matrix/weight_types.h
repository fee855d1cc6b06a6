#pragma once
#include <cstdint>

namespace octavo {

// Every storage type of weights: its name, and the columns and bytes of its smallest block. GGUF's blocks are those of
// ggml-common.h. `weightTypes` of src/weights.ts lists the same; the addon is refused when the two differ.
#define OCTAVO_WEIGHT_TYPES(X)                                                                                       \
    X(f32, 1, 4) X(f16, 1, 2) X(bf16, 1, 2)                                                                          \
    X(q4_0, 32, 18) X(q5_0, 32, 22) X(q8_0, 32, 34) X(q4_k, 256, 144) X(q5_k, 256, 176) X(q6_k, 256, 210)             \
    X(int8, 32, 32) X(int4, 32, 16) X(f8_e4m3, 1, 1) X(uint8, 1, 1) X(table4, 2, 1)                                  \
    X(q4_1, 32, 20) X(q5_1, 32, 24) X(q2_k, 256, 84) X(q3_k, 256, 110)                                               \
    X(iq4_nl, 32, 18) X(iq4_xs, 256, 136) X(mxfp4, 32, 17) X(int2, 32, 8) X(int3, 32, 12)

#define OCTAVO_WEIGHT_TYPE(name, columns, bytes) name,
enum class WeightType { OCTAVO_WEIGHT_TYPES(OCTAVO_WEIGHT_TYPE) };
#undef OCTAVO_WEIGHT_TYPE

struct WeightBlock {
    const char* name;
    int64_t columns;
    int64_t bytes;
};

#define OCTAVO_WEIGHT_BLOCK(name, columns, bytes) {#name, columns, bytes},
constexpr WeightBlock kWeightBlocks[] = {OCTAVO_WEIGHT_TYPES(OCTAVO_WEIGHT_BLOCK)};
#undef OCTAVO_WEIGHT_BLOCK

static inline constexpr const WeightBlock& block_of(WeightType type) { return kWeightBlocks[static_cast<int>(type)]; }

/// How a code u of a row becomes a weight. `s` and `m` are per row and group of 32 columns unless said otherwise.
enum class Scaling {
    /// s*(u - zero), s in f16. Meta: per group f16 s[16].
    half,
    /// (d*sc)*u - (dmin*mn). Meta: per super-block f16 d[16], f16 dmin[16], u8 sc[8][16], u8 mn[8][16].
    super_min,
    /// d*u + m. Meta: per group f16 d[16], f16 m[16].
    half_min,
    /// (d*sc)*(u - zero). Meta: per super-block f16 d[16], i8 sc[8][16].
    super_single,
    /// (d*sc)*(u - zero), sc per 16 columns. Meta: per super-block f16 d[16], i8 sc[16 halves][16].
    super_halves,
    /// (d*sc)*u - (dmin*mn), both per 16 columns. Meta: per super-block f16 d[16], f16 dmin[16], u8 (sc | mn << 4)[16 halves][16].
    super_half_minima,
    /// 2^(e - 128)*(u - zero), 0 where e is 0 or 1. Meta: per group u8 e[16].
    exponents,
    /// s*(u - zero), s in f32 over `groups_per_scale` groups. Meta: per scale f32 s[16].
    single,
    /// s*(u - zero), s in f32 for a whole row, which multiplies the row's finished sum. Meta: f32 s[16].
    row,
    /// s*(u - z). Meta: per scale f32 s[16], f32 z[16].
    single_zeros,
};

/// How the integer kernels multiply weights of a type.
struct Format {
    WeightType type;
    int bits;  // 2, 3, 4, 5, 6 or 8
    int zero;
    Scaling scaling;
    /// Codes of 4 bits: what u is for each; null where it is the code.
    const uint8_t* table = nullptr;
};

/// Values of kvalues_iq4nl and kvalues_mxfp4 (ggml-common.h; the latter are twice those of E2M1) above a zero of 128.
static constexpr uint8_t kIq4Table[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
static constexpr uint8_t kMxfp4Table[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};

/// A source with zero points takes the last format of its type, int8 with one scale a row that of Scaling::row.
constexpr Format kFormats[] = {
    {WeightType::q4_0, 4, 8, Scaling::half},
    {WeightType::q5_0, 5, 16, Scaling::half},
    {WeightType::q8_0, 8, 128, Scaling::half},
    {WeightType::q4_k, 4, 0, Scaling::super_min},
    {WeightType::q5_k, 5, 0, Scaling::super_min},
    {WeightType::q6_k, 6, 32, Scaling::super_halves},
    {WeightType::int8, 8, 128, Scaling::single},
    {WeightType::int4, 4, 8, Scaling::single},
    {WeightType::int4, 4, 0, Scaling::single_zeros},
    {WeightType::q4_1, 4, 0, Scaling::half_min},
    {WeightType::q5_1, 5, 0, Scaling::half_min},
    {WeightType::q2_k, 2, 0, Scaling::super_half_minima},
    {WeightType::q3_k, 3, 4, Scaling::super_halves},
    {WeightType::iq4_nl, 4, 128, Scaling::half, kIq4Table},
    {WeightType::iq4_xs, 4, 128, Scaling::super_single, kIq4Table},
    {WeightType::mxfp4, 4, 128, Scaling::exponents, kMxfp4Table},
    {WeightType::int2, 2, 0, Scaling::single_zeros},
    {WeightType::int3, 3, 0, Scaling::single_zeros},
    {WeightType::uint8, 8, 0, Scaling::single_zeros},
    {WeightType::int8, 8, 128, Scaling::row},
};
constexpr int kNumFormats = sizeof(kFormats) / sizeof(kFormats[0]);

/// Its index in kFormats; -1 where no integer kernel multiplies the type. `whole_rows`: a group is a row.
static inline constexpr int format_of(WeightType type, bool zeros, bool whole_rows) {
    int found = -1;
    for (int i = 0; i < kNumFormats; ++i) {
        const bool of_rows = kFormats[i].scaling == Scaling::row;
        if (kFormats[i].type == type && (found < 0 || (of_rows ? whole_rows : zeros))) found = i;
    }
    return found;
}

}  // namespace octavo
