#include "float_matrix.h"

#include <algorithm>
#include <cstring>

#include "../core/half.h"
#include "float_pack.h"
#include "layout.h"

namespace octavo {

namespace {

constexpr int kRowsSlot = 0;
constexpr int kScratchSlot = 1;
constexpr int64_t kRowBlock = 256;
/// Below this many activations, rounding them is not worth waking a thread for.
constexpr int64_t kSerialActivations = 16384;

FloatMultiply kernel_for(WeightType type, const FloatKernelTable& table) {
    if (type == WeightType::f32) return table.f32;
    return type == WeightType::f16 ? table.f16 : table.bf16;
}

}  // namespace

FloatMatrix::FloatMatrix(const SourceStack& stack, ThreadPool& pool)
    : type_(stack.type()),
      rows_(stack.rows()),
      cols_(stack.cols()),
      table_(float_kernels()),
      multiply_(kernel_for(type_, table_)) {
    memory_ = AlignedMemory(static_cast<size_t>(panels() * packed_cols() * column_bytes()));
    const PanelSource source(stack);
    FiniteCheck check;
    pool.parallel_for(panels(), source.grain(), [&](int64_t begin, int64_t end, int) {
        for (int64_t panel = begin; panel < end; ++panel) {
            uint8_t* out = memory_.data() + panel * packed_cols() * column_bytes();
            const int bad = pack_float_panel(type_, source.rows(panel), cols_, out);
            if (bad >= 0) check.found(panel * kPanelRows + bad);
        }
        source.release(begin, end);
    });
    check.require(stack);
}

int64_t FloatMatrix::panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }

int64_t FloatMatrix::packed_cols() const { return type_ == WeightType::bf16 ? (cols_ + 1) / 2 * 2 : cols_; }

int64_t FloatMatrix::column_bytes() const { return (type_ == WeightType::f32 ? 4 : 2) * kPanelRows; }

uint16_t* FloatMatrix::round_rows(const float* x, int64_t ldx, int64_t m, Workspace& workspace, ThreadPool& pool) const {
    uint16_t* rounded = static_cast<uint16_t*>(workspace.get(kRowsSlot, static_cast<size_t>(m * packed_cols()) * sizeof(uint16_t)));
    const auto round = [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
            for (int64_t c = 0; c < cols_; c += kFloatBlock) {
                const int64_t packed = std::min<int64_t>(kFloatBlock, packed_cols() - c);
                const int64_t count = std::min<int64_t>(kFloatBlock, cols_ - c);
                uint16_t* out = rounded + c * m + row * packed;
                table_.to_bf16(x + row * ldx + c, count, out);
                if (count < packed) out[count] = 0;
            }
        }
    };
    if (m * cols_ <= kSerialActivations) {
        round(0, m, 0);
    } else {
        pool.parallel_for(m, std::max<int64_t>(1, kSerialActivations / 2 / cols_), round);
    }
    return rounded;
}

void FloatMatrix::linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias,
                         Workspace& workspace, ThreadPool& pool) const {
    if (m <= 0) return;
    const uint16_t* rounded = type_ == WeightType::bf16 ? round_rows(x, ldx, m, workspace, pool) : nullptr;

    const int64_t tile_panels = table_.tile_panels;
    const int64_t num_tiles = (panels() + tile_panels - 1) / tile_panels;
    const int64_t row_block = num_tiles >= 2 * pool.size() ? kRowBlock : kRowBlock / 4;
    const int64_t num_row_blocks = (m + row_block - 1) / row_block;
    const int64_t stride = tile_panels * kPanelRows;
    const int64_t num_sums = std::min(row_block, m) * stride;
    float* scratch = static_cast<float*>(
        workspace.get(kScratchSlot, static_cast<size_t>(num_sums * pool.size()) * sizeof(float)));
    const int64_t panel_stride = packed_cols() * column_bytes();

    pool.parallel_for(num_tiles * num_row_blocks, 1, [&](int64_t task, int64_t, int thread) {
        const int64_t first_panel = task / num_row_blocks * tile_panels;
        const int64_t first_row = task % num_row_blocks * row_block;
        const int64_t num_rows = std::min(row_block, m - first_row);
        const int num_panels = static_cast<int>(std::min(tile_panels, panels() - first_panel));
        float* sums = scratch + thread * num_sums;
        for (int64_t c = 0; c < packed_cols(); c += kFloatBlock) {
            const int64_t columns = std::min<int64_t>(kFloatBlock, packed_cols() - c);
            const FloatPanels weights{memory_.data() + first_panel * panel_stride + c * column_bytes(), panel_stride, num_panels};
            FloatRows rows;
            if (rounded != nullptr) {
                rows = {reinterpret_cast<const uint8_t*>(rounded + c * m + first_row * columns), columns * 2};
            } else {
                rows = {reinterpret_cast<const uint8_t*>(x + first_row * ldx + c), ldx * 4};
            }
            multiply_(weights, rows, num_rows, columns, sums, stride, c == 0);
        }
        const int64_t column = first_panel * kPanelRows;
        const int64_t count = std::min(num_panels * int64_t{kPanelRows}, rows_ - column);
        for (int64_t row = 0; row < num_rows; ++row) {
            float* out = y + (first_row + row) * ldy + column;
            const float* sum = sums + row * stride;
            if (bias != nullptr) {
                for (int64_t i = 0; i < count; ++i) out[i] = sum[i] + bias[column + i];
            } else {
                std::memcpy(out, sum, static_cast<size_t>(count) * sizeof(float));
            }
        }
    });
}

void FloatMatrix::row(int64_t r, float* out) const {
    const uint8_t* panel = memory_.data() + r / kPanelRows * packed_cols() * column_bytes();
    const int64_t lane = r % kPanelRows;
    for (int64_t c = 0; c < cols_; ++c) {
        if (type_ == WeightType::f32) {
            std::memcpy(out + c, panel + (c * kPanelRows + lane) * 4, sizeof(float));
            continue;
        }
        const int64_t at = type_ == WeightType::bf16 ? (c / 2 * kPanelRows + lane) * 2 + c % 2 : c * kPanelRows + lane;
        uint16_t value;
        std::memcpy(&value, panel + at * 2, sizeof value);
        out[c] = type_ == WeightType::bf16 ? bf16_to_f32(value) : f16_to_f32(value);
    }
}

}  // namespace octavo
