#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "matrix.h"

namespace octavo {

/// Integers with scales of their own beside them, in groups of whole units of packing.
bool has_plain_groups(WeightType type);

bool is_float(WeightType type);

/// Whether CodebookMatrix alone takes them: packed bytes do not make such a matrix.
bool is_codebook(WeightType type);

/// Whether these are bytes in groups that the integer kernels take; CodebookMatrix takes other groups.
bool is_plain_uint8(const MatrixSource& source);

/// Bytes of one row of `values`.
int64_t source_row_bytes(WeightType type, int64_t cols);

/// Sources stacked along rows, checked against each other and against their type's rules.
class SourceStack {
public:
    /// Throws std::runtime_error naming the tensor.
    explicit SourceStack(const std::vector<MatrixSource>& sources);

    WeightType type() const { return sources_.front().type; }
    int64_t rows() const { return rows_; }
    int64_t cols() const { return sources_.front().cols; }
    int64_t group() const { return sources_.front().group; }
    const std::vector<MatrixSource>& sources() const { return sources_; }
    bool any_zeros() const;

    struct Row {
        const MatrixSource* source;
        int64_t index;
        const uint8_t* values() const { return source->values + index * source_row_bytes(source->type, source->cols); }
    };
    Row row(int64_t index) const;

private:
    const std::vector<MatrixSource>& sources_;
    std::vector<int64_t> ends_;
    int64_t rows_ = 0;
};

/// Remembers the first row with a weight that is not finite; packing threads share it.
class FiniteCheck {
public:
    void found(int64_t row) {
        int64_t known = first_bad_row_.load(std::memory_order_relaxed);
        while (row < known && !first_bad_row_.compare_exchange_weak(known, row, std::memory_order_relaxed)) {
        }
    }
    /// Throws if a row was found.
    void require(const SourceStack& stack) const;

private:
    std::atomic<int64_t> first_bad_row_{INT64_MAX};
};

/// Brings the pages of mapped sources into memory and reads every row once; throws as Matrix::pack does when one is not finite.
void check_in_files(const SourceStack& stack, FunctionRef<bool(const uint8_t* row)> is_finite, ThreadPool& pool);

}  // namespace octavo
