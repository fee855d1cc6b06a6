#include "source.h"

#include <algorithm>
#include <stdexcept>

#include "quantised/blocks.h"

namespace octavo {

namespace {

/// Bytes that a thread brings into memory and checks at a time.
constexpr int64_t kCheckBytes = int64_t{2} << 20;

[[noreturn]] void fail(const MatrixSource& source, const std::string& what) {
    throw std::runtime_error("tensor " + source.name + ": " + what);
}

/// Integers with scales of their own beside them, in groups of whole units of packing.
bool has_plain_groups(WeightType type) {
    return type == WeightType::int2 || type == WeightType::int3 || type == WeightType::int4 || type == WeightType::int8;
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

const char* weight_type_name(WeightType type) {
    static constexpr const char* kNames[] = {"f32",  "f16",  "bf16", "q4_0", "q5_0", "q8_0",
                                             "q4_k", "q5_k", "q6_k", "int8", "int4",
                                             "f8_e4m3", "uint8", "table4", "q4_1", "q5_1", "q2_k",
                                             "q3_k", "iq4_nl", "iq4_xs", "mxfp4", "int2", "int3"};
    return kNames[static_cast<int>(type)];
}

int64_t column_unit(WeightType type) {
    switch (type) {
        case WeightType::f32:
        case WeightType::f16:
        case WeightType::bf16:
        case WeightType::f8_e4m3:
        case WeightType::uint8:
            return 1;
        case WeightType::table4:
            return 2;
        case WeightType::q4_k:
        case WeightType::q5_k:
        case WeightType::q6_k:
        case WeightType::q2_k:
        case WeightType::q3_k:
        case WeightType::iq4_xs:
            return kSuperColumns;
        default:
            return kGroup;
    }
}

bool is_float(WeightType type) { return type == WeightType::f32 || type == WeightType::f16 || type == WeightType::bf16; }

bool is_codebook(WeightType type) { return type == WeightType::f8_e4m3 || type == WeightType::table4; }

bool is_plain_uint8(const MatrixSource& source) {
    return source.type == WeightType::uint8 && source.scale_rows == 0 && source.group % kGroup == 0 &&
           source.cols % source.group == 0;
}

int64_t source_row_bytes(WeightType type, int64_t cols) {
    switch (type) {
        case WeightType::f32:
            return cols * 4;
        case WeightType::f16:
        case WeightType::bf16:
            return cols * 2;
        case WeightType::q4_0:
            return cols / kGroup * BlocksQ4_0::kBytes;
        case WeightType::q5_0:
            return cols / kGroup * BlocksQ5_0::kBytes;
        case WeightType::q8_0:
            return cols / kGroup * BlocksQ8_0::kBytes;
        case WeightType::q4_k:
            return cols / kSuperColumns * BlocksQ4_K::kBytes;
        case WeightType::q5_k:
            return cols / kSuperColumns * BlocksQ5_K::kBytes;
        case WeightType::q6_k:
            return cols / kSuperColumns * BlocksQ6_K::kBytes;
        case WeightType::q4_1:
            return cols / kGroup * BlocksQ4_1::kBytes;
        case WeightType::q5_1:
            return cols / kGroup * BlocksQ5_1::kBytes;
        case WeightType::q2_k:
            return cols / kSuperColumns * BlocksQ2_K::kBytes;
        case WeightType::q3_k:
            return cols / kSuperColumns * BlocksQ3_K::kBytes;
        case WeightType::iq4_nl:
            return cols / kGroup * BlocksQ4_0::kBytes;
        case WeightType::iq4_xs:
            return cols / kSuperColumns * BlocksIQ4_XS::kBytes;
        case WeightType::mxfp4:
            return cols / kGroup * BlocksMXFP4::kBytes;
        case WeightType::int2:
            return cols / kGroup * BlocksInt2::kBytes;
        case WeightType::int3:
            return cols / kGroup * BlocksInt3::kBytes;
        case WeightType::int8:
        case WeightType::f8_e4m3:
        case WeightType::uint8:
            return cols;
        case WeightType::int4:
        case WeightType::table4:
            return cols / 2;
    }
    return 0;
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
