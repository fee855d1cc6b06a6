#include "coded_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../core/half.h"
#include "../core/isa.h"
#include "layout.h"
#include "panel_rows.h"
#include "tile_tasks.h"

namespace octavo {

const CodedKernelTable& coded_kernels() {
    switch (active_isa()) {
#if defined(__x86_64__)
        case Isa::avx512:
            return coded_kernels_avx512();
        case Isa::avx2:
            return coded_kernels_avx2();
#elif defined(__aarch64__)
        case Isa::neon:
            return coded_kernels_neon();
#endif
        default:
            return coded_kernels_scalar();
    }
}

namespace {

/// Decoding a panel pays for itself over this many rows.
constexpr int64_t kRowBlock = 256;

DecodeCodes kernel_for(WeightType type) {
    const CodedKernelTable& table = coded_kernels();
    if (type == WeightType::f8_e4m3) return table.f8_e4m3;
    return type == WeightType::uint8 ? table.uint8 : table.table4;
}

/// Largest magnitude of a code's value less its zero point.
float span_of(WeightType type, const float* table, float zero) {
    if (type == WeightType::f8_e4m3) return 448.0f;
    if (type == WeightType::uint8) return 255.0f + std::fabs(zero);
    float largest = 0.0f;
    for (int i = 0; i < 16; ++i) largest = std::max(largest, std::fabs(table[i]));
    return largest + std::fabs(zero);
}

}  // namespace

CodedMatrix::CodedMatrix(const SourceStack& stack, ThreadPool& pool)
    : type_(stack.type()),
      rows_(stack.rows()),
      cols_(stack.cols()),
      group_(stack.group()),
      kernels_(float_kernels()),
      decode_(kernel_for(type_)) {
    const std::vector<float>& table = stack.row(0).source->table;
    std::copy(table.begin(), table.end(), table_);
    const int64_t scale_rows = stack.row(0).source->scale_rows;
    const bool shared = scale_rows > 0 && scale_rows % kPanelRows == 0;
    meta_panels_ = shared ? scale_rows / kPanelRows : panels();
    codes_ = AlignedMemory(static_cast<size_t>(panels() * code_bytes()));
    meta_ = AlignedMemory(static_cast<size_t>(meta_panels_ * groups() * 2 * kPanelRows) * sizeof(float));
    const PanelSource source(stack);
    FiniteCheck check;
    pool.parallel_for(panels(), source.grain(), [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
            pack_codes(stack, i, check);
            if (i < meta_panels_) pack_meta(stack, i, check);
        }
        source.release(begin, end);
    });
    check.require(stack);
}

int64_t CodedMatrix::code_bytes() const { return type_ == WeightType::table4 ? cols_ * kPanelRows / 2 : cols_ * kPanelRows; }

void CodedMatrix::pack_meta(const SourceStack& stack, int64_t index, FiniteCheck& check) {
    float* out = meta(index);
    const int num_rows = static_cast<int>(std::min<int64_t>(kPanelRows, rows_ - index * kPanelRows));
    for (int lane = 0; lane < num_rows; ++lane) {
        const SourceStack::Row row = stack.row(index * kPanelRows + lane);
        const MatrixSource& from = *row.source;
        const int64_t scale_row = from.scale_rows > 0 ? row.index % from.scale_rows : row.index;
        for (int64_t g = 0; g < groups(); ++g) {
            const int64_t at = (scale_row * groups() + g) * 4;
            float scale;
            std::memcpy(&scale, from.scales + at, sizeof scale);
            float zero = 0.0f;
            if (from.zeros != nullptr) std::memcpy(&zero, from.zeros + at, sizeof zero);
            if (!f32_is_finite(scale * span_of(type_, table_, zero))) check.found(index * kPanelRows + lane);
            out[g * 2 * kPanelRows + lane] = scale;
            out[g * 2 * kPanelRows + kPanelRows + lane] = zero;
        }
    }
}

void CodedMatrix::pack_codes(const SourceStack& stack, int64_t index, FiniteCheck& check) {
    // Columns are taken a few lines at a time, so that the panel being written stays in the nearest cache.
    constexpr int64_t kStrip = 64;
    uint8_t* out = codes(index);
    const int num_rows = static_cast<int>(std::min<int64_t>(kPanelRows, rows_ - index * kPanelRows));
    const uint8_t* rows[kPanelRows];
    for (int lane = 0; lane < num_rows; ++lane) rows[lane] = stack.row(index * kPanelRows + lane).values();
    for (int64_t begin = 0; begin < cols_; begin += kStrip) {
        const int64_t end = std::min(begin + kStrip, cols_);
        for (int lane = 0; lane < num_rows; ++lane) {
            if (type_ == WeightType::table4) {
                for (int64_t c = begin; c < end; ++c) {
                    const int code = rows[lane][c / 2] >> (c % 2 * 4) & 0x0f;
                    uint8_t& pair = out[c * kPanelRows / 2 + lane % 8];
                    pair = static_cast<uint8_t>(lane < 8 ? (pair & 0xf0) | code : (pair & 0x0f) | code << 4);
                }
                continue;
            }
            bool finite = true;
            for (int64_t c = begin; c < end; ++c) {
                const uint8_t code = rows[lane][c];
                finite &= (code & 0x7f) != 0x7f;
                out[c * kPanelRows + lane] = code;
            }
            if (!finite && type_ == WeightType::f8_e4m3) check.found(index * kPanelRows + lane);
        }
    }
}

void CodedMatrix::decode(int64_t panel, int64_t first, int64_t count, float* out) const {
    const uint8_t* from = codes(panel);
    const float* scaling = meta(panel);
    const int64_t column_bytes = code_bytes() / cols_;
    for (int64_t c = first; c < first + count;) {
        const int64_t g = c / group_;
        const int64_t end = std::min((g + 1) * group_, first + count);
        const float* scales = scaling + g * 2 * kPanelRows;
        decode_(from + c * column_bytes, end - c, table_, scales, scales + kPanelRows, out + (c - first) * kPanelRows);
        c = end;
    }
}

void CodedMatrix::encode(const float* x, int64_t row, int64_t m, void* rows) const {
    float* out = static_cast<float*>(rows);
    for (int64_t c = 0; c < cols_; c += kFloatBlock) {
        const int64_t count = std::min<int64_t>(kFloatBlock, cols_ - c);
        std::memcpy(out + c * m + row * count, x + c, static_cast<size_t>(count) * sizeof(float));
    }
}

void CodedMatrix::multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                           ThreadPool& pool) const {
    if (m <= 0) return;
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const TilePlan plan{rows_, m, kernels_.tile_panels, kRowBlock, 1};
    const int64_t block_floats = std::min<int64_t>(kFloatBlock, cols_) * kPanelRows;
    const int64_t decoded_floats = kernels_.tile_panels * block_floats;
    const int64_t thread_floats = (decoded_floats + halves * plan.num_sums() + 15) / 16 * 16;
    float* scratch = static_cast<float*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(thread_floats * pool.size()) * sizeof(float)));
    const float* encoded = static_cast<const float*>(rows);

    run_tiles(plan, output, pool, [&](int thread) { return scratch + thread * thread_floats + decoded_floats; },
              [&](const Tile& tile, int thread, float* sums) {
                  float* decoded = scratch + thread * thread_floats;
                  for (int64_t c = 0; c < cols_; c += kFloatBlock) {
                      const int64_t columns = std::min<int64_t>(kFloatBlock, cols_ - c);
                      for (int64_t p = 0; p < tile.num_panels; ++p) {
                          decode(tile.first_panel + p, c, columns, decoded + p * block_floats);
                      }
                      const FloatPanels weights{reinterpret_cast<const uint8_t*>(decoded), block_floats * 4,
                                                static_cast<int>(tile.num_panels)};
                      const FloatRows block{reinterpret_cast<const uint8_t*>(encoded + c * m + tile.first_row * columns),
                                            columns * 4};
                      kernels_.f32(weights, block, tile.num_rows, columns, sums, plan.stride(), c == 0);
                  }
              });
}

void CodedMatrix::row(int64_t r, float* out) const {
    alignas(64) float decoded[kFloatBlock * kPanelRows];
    const int64_t lane = r % kPanelRows;
    for (int64_t c = 0; c < cols_; c += kFloatBlock) {
        const int64_t columns = std::min<int64_t>(kFloatBlock, cols_ - c);
        decode(r / kPanelRows, c, columns, decoded);
        for (int64_t i = 0; i < columns; ++i) out[c + i] = decoded[i * kPanelRows + lane];
    }
}

}  // namespace octavo
