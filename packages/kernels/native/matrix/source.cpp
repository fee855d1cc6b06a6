#include "source.h"

#include <algorithm>
#include <stdexcept>

#include "layout.h"


namespace octavo {

namespace {

/// Bytes that a thread brings into memory and checks at a time.
constexpr int64_t kCheckBytes = int64_t{2} << 20;

[[noreturn]] void fail(const MatrixSource& source, const std::string& what) {
    throw std::runtime_error("tensor " + source.name + ": " + what);
}

void check(const MatrixSource& source, const MatrixSource& first) {
    if (source.rows < 1 || source.cols < 1 || source.values == nullptr) fail(source, "is empty");
    if (source.type != first.type || source.cols != first.cols || source.group != first.group) {
        fail(source, "cannot be stacked on " + first.name + ": type, columns or group size differ");
    }
    if (source.cols % block_of(source.type).columns != 0) {
        fail(source, std::string(block_of(source.type).name) + " needs columns in multiples of " +
                         std::to_string(block_of(source.type).columns) + ", not " + std::to_string(source.cols));
    }
    if (has_plain_groups(source.type)) {
        if (source.scales == nullptr) fail(source, "has no scales");
        if (source.group < kGroup || source.group % kGroup != 0 || source.cols % source.group != 0) {
            fail(source, "group size " + std::to_string(source.group) + " is not a multiple of 32 that divides " +
                             std::to_string(source.cols) + " columns");
        }
    }
    if (source.type == WeightType::f8_e4m3 || source.type == WeightType::uint8 || source.type == WeightType::table4) {
        if (source.scales == nullptr) fail(source, "has no scales");
        if (source.group < 1) fail(source, "has no group size");
        if (source.scale_rows > 0 && &source != &first) fail(source, "shares scales between rows and cannot be stacked");
        if (source.table != first.table) fail(source, "cannot be stacked on " + first.name + ": their tables differ");
        if (source.type == WeightType::table4 && source.table.size() != 16) fail(source, "needs a table of 16 values");
    }
}

}  // namespace

bool has_plain_groups(WeightType type) {
    return type == WeightType::int2 || type == WeightType::int3 || type == WeightType::int4 || type == WeightType::int8;
}

bool is_float(WeightType type) { return type == WeightType::f32 || type == WeightType::f16 || type == WeightType::bf16; }

bool is_codebook(WeightType type) { return type == WeightType::f8_e4m3 || type == WeightType::table4; }

bool is_plain_uint8(const MatrixSource& source) {
    return source.type == WeightType::uint8 && source.scale_rows == 0 && source.group % kGroup == 0 &&
           source.cols % source.group == 0;
}

int64_t source_row_bytes(WeightType type, int64_t cols) { return cols / block_of(type).columns * block_of(type).bytes; }

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

void check_in_files(const SourceStack& stack, FunctionRef<bool(const uint8_t* row)> is_finite, ThreadPool& pool) {
    FiniteCheck check;
    int64_t first = 0;
    for (const MatrixSource& source : stack.sources()) {
        const int64_t row_bytes = source_row_bytes(source.type, source.cols);
        const size_t offset = static_cast<size_t>(source.values - source.file->data());
        source.file->keep(offset, static_cast<size_t>(source.rows * row_bytes));
        pool.parallel_for(source.rows, std::max<int64_t>(1, kCheckBytes / row_bytes), [&](int64_t begin, int64_t end, int) {
            source.file->populate(offset + static_cast<size_t>(begin * row_bytes), static_cast<size_t>((end - begin) * row_bytes));
            for (int64_t row = begin; row < end; ++row) {
                if (!is_finite(source.values + row * row_bytes)) check.found(first + row);
            }
        });
        first += source.rows;
    }
    check.require(stack);
}

}  // namespace octavo
