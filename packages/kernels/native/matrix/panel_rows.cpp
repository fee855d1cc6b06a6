#include "panel_rows.h"

#include <algorithm>

#include "../core/mapped_file.h"

namespace octavo {

namespace {

/// Bytes of source that a thread takes at a time: long enough to hide a call to the system, short beside what is packed.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

}  // namespace

PanelSource::PanelSource(const SourceStack& stack) : stack_(stack) {
    const int64_t row_bytes = source_row_bytes(stack.type(), stack.cols());
    if (stack.rows() % kPanelRows != 0) padding_.resize(static_cast<size_t>(std::max(row_bytes, 4 * stack.cols() / kGroup)));
    grain_ = std::max<int64_t>(1, kChunkBytes / (kPanelRows * row_bytes));
}

PanelRows PanelSource::rows(int64_t panel) const {
    PanelRows rows{};
    for (int lane = 0; lane < kPanelRows; ++lane) {
        const int64_t index = panel * kPanelRows + lane;
        if (index >= stack_.rows()) {
            rows.values[lane] = rows.scales[lane] = rows.zeros[lane] = padding_.data();
            continue;
        }
        const SourceStack::Row row = stack_.row(index);
        const MatrixSource& source = *row.source;
        rows.values[lane] = row.values();
        if (source.scales == nullptr) continue;
        const int64_t scale_bytes = source.cols / source.group * 4;
        rows.scales[lane] = source.scales + row.index * scale_bytes;
        if (source.zeros != nullptr) rows.zeros[lane] = source.zeros + row.index * scale_bytes;
    }
    return rows;
}

void PanelSource::release(int64_t begin, int64_t end) const {
    const int64_t last = std::min(end * kPanelRows, stack_.rows());
    for (int64_t index = begin * kPanelRows; index < last;) {
        const SourceStack::Row row = stack_.row(index);
        const MatrixSource& source = *row.source;
        const int64_t count = std::min(last - index, source.rows - row.index);
        const int64_t row_bytes = source_row_bytes(source.type, source.cols);
        if (source.file != nullptr) {
            source.file->release(static_cast<size_t>(row.values() - source.file->data()), static_cast<size_t>(count * row_bytes));
        }
        index += count;
    }
}

}  // namespace octavo
