#pragma once
#include "../row_kernels.h"

// Register tiles of attention's two products. `Source::at(k, column)` gives vector `column` of row k of the right-hand side;
// the left-hand side holds one factor per k, 32 bits each. `Source::Arithmetic` says what a factor is and how it is multiplied,
// `Source::fetches_ahead` whether the products fetch what comes next.
namespace octavo {
namespace {

/// Rows and vectors of a register tile: all accumulators, a row of the right-hand side and one factor stay in registers.
constexpr int tile_rows = Vec::width == 16 ? 6 : 4;
constexpr int tile_vecs = Vec::width == 16 ? 4 : 2;
/// A few rows more than a tile's, on half the vectors, save reading the right-hand side twice.
constexpr int most_rows = Vec::width == 16 ? 8 : 4;

/// Memory that comes next, fetched a few lines at a time beside what is computed. A core waits for few lines at once, and
/// memory stands idle whenever it is asked for none: the lines are spread over all of the arithmetic. What finds no room is
/// not fetched.
class Ahead {
public:
    bool has_room() const { return num_pieces_ < most_pieces; }
    void add(const uint8_t* begin, int64_t bytes) {
        if (num_pieces_ == 0) at_ = begin;
        pieces_[num_pieces_++] = {begin, begin + bytes};
    }
    void fetch(int64_t lines) {
        if (piece_ >= num_pieces_) return;
        for (int64_t i = 0; i < lines; i++) __builtin_prefetch(at_ + 64 * i);
        at_ += 64 * lines;
        if (at_ < pieces_[piece_].end) return;
        piece_++;
        if (piece_ < num_pieces_) at_ = pieces_[piece_].begin;
    }

private:
    static constexpr int most_pieces = 16;
    struct Piece {
        const uint8_t* begin;
        const uint8_t* end;
    };

    const uint8_t* at_ = nullptr;
    int piece_ = 0;
    int num_pieces_ = 0;
    Piece pieces_[most_pieces];
};

/// Steps of a product between two calls of `Ahead::fetch`.
constexpr int64_t steps_per_fetch = 4;

/// Factors are f32, one per k.
struct FloatArithmetic {
    static constexpr int64_t step = 1;
    using Factors = Vec;
    using Packed = Vec;
    static Factors broadcast(const float* factor) { return splat(*factor); }
    static Vec add_product(Factors factor, Packed row, Vec total) { return multiply_add(factor, row, total); }
    static Packed keep(Packed row, uint32_t) { return row; }
    /// Brings a row of `chunk` f32 values to factors, in place.
    static void pack(float*, int64_t, int64_t) {}
};

/// c[r][:] = (accumulate ? c[r][:] : 0) + sum over k in [begin, end), ascending, of a[r][k] * b(k)[:]
template <int R, int C, typename Source>
inline void multiply_tile(const float* a, int64_t lda, const Source& b, int64_t column, int64_t begin, int64_t end, float* c,
                          int64_t ldc, bool accumulate, Ahead* ahead) {
    using Arithmetic = typename Source::Arithmetic;
    Vec total[R][C];
    for (int r = 0; r < R; r++) {
        for (int j = 0; j < C; j++) total[r][j] = accumulate ? load(c + r * ldc + (column + j) * Vec::width) : zero();
    }
    for (int64_t k = begin; k < end;) {
        int64_t stop = end;
        if constexpr (Source::fetches_ahead) {
            // With more rows a step takes longer, and fewer lines need to come with each.
            constexpr int lines = R <= 2 ? C : (2 * C + R - 1) / R;
            if (ahead != nullptr) ahead->fetch(lines * steps_per_fetch);
            stop = k + steps_per_fetch < end ? k + steps_per_fetch : end;
        }
        for (; k < stop; k++) {
            typename Arithmetic::Packed row[C];
            for (int j = 0; j < C; j++) row[j] = b.at(k, column + j);
            for (int r = 0; r < R; r++) {
                const auto factor = Arithmetic::broadcast(a + r * lda + k);
                for (int j = 0; j < C; j++) total[r][j] = Arithmetic::add_product(factor, row[j], total[r][j]);
            }
        }
    }
    for (int r = 0; r < R; r++) {
        for (int j = 0; j < C; j++) store(c + r * ldc + (column + j) * Vec::width, total[r][j]);
    }
}

template <int R, typename Source>
inline void multiply_rows(const float* a, int64_t lda, const Source& b, int64_t first, int64_t last, int64_t begin,
                          int64_t end, float* c, int64_t ldc, bool accumulate, Ahead* ahead) {
    constexpr int C = R > tile_rows ? tile_vecs / 2 : tile_vecs;
    int64_t j = first;
    for (; j + C <= last; j += C) multiply_tile<R, C>(a, lda, b, j, begin, end, c, ldc, accumulate, ahead);
    if constexpr (C == 4) {
        for (; j + 2 <= last; j += 2) multiply_tile<R, 2>(a, lda, b, j, begin, end, c, ldc, accumulate, ahead);
    }
    for (; j < last; j++) multiply_tile<R, 1>(a, lda, b, j, begin, end, c, ldc, accumulate, ahead);
}

/// Vectors [first, last) of at most `most_rows` rows; each element's sum is its own.
template <typename Source>
inline void multiply(int64_t rows, const float* a, int64_t lda, const Source& b, int64_t first, int64_t last, int64_t begin,
                     int64_t end, float* c, int64_t ldc, bool accumulate, Ahead* ahead) {
    switch (rows) {
        case 1:
            return multiply_rows<1>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
        case 2:
            return multiply_rows<2>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
        case 3:
            return multiply_rows<3>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
        case 4:
            return multiply_rows<4>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
        default:
            break;
    }
    if constexpr (most_rows > 4) {
        switch (rows) {
            case 5:
                return multiply_rows<5>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
            case 6:
                return multiply_rows<6>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
            case 7:
                return multiply_rows<7>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
            default:
                return multiply_rows<8>(a, lda, b, first, last, begin, end, c, ldc, accumulate, ahead);
        }
    }
}

/// Rows that a register tile takes next of those that are left.
inline int64_t next_rows(int64_t left) {
    if (left <= most_rows) return left;
    return left >= 2 * tile_rows ? tile_rows : (left + 1) / 2;
}

}  // namespace
}  // namespace octavo
