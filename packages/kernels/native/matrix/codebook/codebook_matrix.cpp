#include "codebook_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../../core/half.h"
#include "../../core/isa.h"
#include "../layout.h"
#include "../panel_rows.h"

namespace octavo {

const CodebookKernelTable& codebook_kernels() { return OCTAVO_KERNELS_OF(kernel_path(KernelKind::codebook), codebook_kernels); }

namespace {

/// Decoding a panel pays for itself over this many rows.
constexpr int64_t kRowBlock = 512;
/// Narrower groups are scaled before they are multiplied.
constexpr int64_t kNarrowGroup = 32;

const CodeKernels& kernels_of(WeightType type, const CodebookKernelTable& kernels) {
    if (type == WeightType::f8_e4m3) return kernels.f8_e4m3;
    return type == WeightType::uint8 ? kernels.uint8 : kernels.table4;
}

float e4m3_value(uint8_t code) {
    const int exponent = code >> 3 & 15;
    const float significand = static_cast<float>((code & 7) + (exponent > 0 ? 8 : 0));
    return std::ldexp((code & 0x80) != 0 ? -significand : significand, std::max(exponent, 1) - 10);
}

/// Largest magnitude of a code's value less its zero point.
float span_of(WeightType type, const float* table, float zero) {
    if (type == WeightType::f8_e4m3) return 448.0f;
    if (type == WeightType::uint8) return 255.0f + std::fabs(zero);
    float largest = 0.0f;
    for (int i = 0; i < 16; ++i) largest = std::max(largest, std::fabs(table[i]));
    return largest + std::fabs(zero);
}

float round_to_bf16(float value) { return bf16_to_f32(f32_to_bf16(value)); }

}  // namespace

CodebookMatrix::CodebookMatrix(const SourceStack& stack, ThreadPool& pool)
    : type_(stack.type()),
      rows_(stack.rows()),
      cols_(stack.cols()),
      group_(stack.group()),
      kernels_(codebook_kernels()),
      products_(float_kernels(KernelKind::codebook)) {
    const MatrixSource& first = *stack.row(0).source;
    std::copy(first.table.begin(), first.table.end(), table_);
    round_table();
    const bool wide = group_ >= cols_ || (group_ >= kNarrowGroup && group_ % 2 == 0);
    const bool shared = first.scale_rows > 0 && first.scale_rows % kPanelRows == 0;
    decodes_weights_ = stack.any_zeros() || shared || !wide;
    meta_panels_ = shared ? first.scale_rows / kPanelRows : panels();
    codes_ = AlignedMemory(static_cast<size_t>(panels() * pairs() * pair_bytes()));
    // One group more: the neighbour of an odd last column may begin it.
    meta_ = AlignedMemory(static_cast<size_t>((meta_panels_ * groups() + 1) * group_floats()) * sizeof(float));
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

void CodebookMatrix::round_table() {
    // Tries factors between one and two and keeps the one at which the entries lose least. FP4's thirds lose nothing at 3 / 2.
    constexpr int kFactors = 64;
    double least = INFINITY;
    for (int k = 0; k < kFactors; ++k) {
        const float factor = 1.0f + static_cast<float>(k) / kFactors;
        double loss = 0;
        for (const float entry : table_) {
            const double gap = static_cast<double>(round_to_bf16(entry * factor)) / factor - entry;
            loss += gap * gap;
        }
        if (!(loss < least)) continue;
        least = loss;
        table_unit_ = 1.0f / factor;
        for (int i = 0; i < 16; ++i) rounded_table_[i] = round_to_bf16(table_[i] * factor);
    }
}

void CodebookMatrix::pack_meta(const SourceStack& stack, int64_t index, FiniteCheck& check) {
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
            out[g * group_floats() + lane] = scale;
            if (decodes_weights_) out[g * group_floats() + kPanelRows + lane] = zero;
        }
    }
}

void CodebookMatrix::pack_codes(const SourceStack& stack, int64_t index, FiniteCheck& check) {
    // A few cache lines of columns at a time, so that the panel being written stays in the first-level cache.
    constexpr int64_t kStrip = 64;
    uint8_t* out = codes(index);
    const int num_rows = static_cast<int>(std::min<int64_t>(kPanelRows, rows_ - index * kPanelRows));
    const uint8_t* rows[kPanelRows];
    for (int lane = 0; lane < num_rows; ++lane) rows[lane] = stack.row(index * kPanelRows + lane).values();
    for (int64_t begin = 0; begin < cols_; begin += kStrip) {
        const int64_t end = std::min(begin + kStrip, cols_);
        for (int lane = 0; lane < num_rows; ++lane) {
            if (type_ == WeightType::table4) {
                for (int64_t p = begin / 2; p < end / 2; ++p) out[p * kPanelRows + lane] = rows[lane][p];
                continue;
            }
            bool finite = true;
            for (int64_t c = begin; c < end; ++c) {
                const uint8_t code = rows[lane][c];
                finite &= (code & 0x7f) != 0x7f;
                out[(c / 2 * kPanelRows + lane) * 2 + c % 2] = code;
            }
            if (!finite && type_ == WeightType::f8_e4m3) check.found(index * kPanelRows + lane);
        }
    }
}

RowEncoding CodebookMatrix::encoding() const {
    return {kernels_.pairs ? RowEncoding::Kind::bf16 : RowEncoding::Kind::rounded, 0, cols_, nullptr};
}

size_t CodebookMatrix::encoded_bytes(int64_t m) const { return static_cast<size_t>(m * tile_cols() * element_bytes()); }

void CodebookMatrix::encode(const float* x, int64_t row, int64_t m, void* rows) const {
    for (int64_t c = 0; c < cols_; c += kFloatBlock) {
        const int64_t wide = std::min<int64_t>(kFloatBlock, tile_cols() - c);
        const int64_t count = std::min<int64_t>(kFloatBlock, cols_ - c);
        uint8_t* at = static_cast<uint8_t*>(rows) + (c * m + row * wide) * element_bytes();
        if (kernels_.pairs) {
            uint16_t* out = reinterpret_cast<uint16_t*>(at);
            products_.to_bf16(x + c, count, out);
            if (count < wide) out[count] = 0;
        } else {
            float* out = reinterpret_cast<float*>(at);
            for (int64_t i = 0; i < count; ++i) out[i] = round_to_bf16(x[c + i]);
        }
    }
}

void CodebookMatrix::decode(int64_t panel, int64_t first, int64_t count, uint8_t* out) const {
    const CodeKernels& kernels = kernels_of(type_, kernels_);
    const uint8_t* from = codes(panel) + first / 2 * pair_bytes();
    const int64_t num_pairs = (count + 1) / 2;
    if (decodes_weights_) {
        kernels.weights(from, num_pairs, table_, {meta(panel), group_}, first, out);
    } else {
        kernels.values(from, num_pairs, rounded_table_, from + kFloatBlock / 2 * pair_bytes(), out);
    }
}

void CodebookMatrix::multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                           ThreadPool& pool) const {
    if (m <= 0) return;
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const int64_t unit = products_.tile_panels;
    const TilePlan plan = plan_tiles(rows_, m, unit, kRowBlock, output.gate != nullptr,
                                     pool.size() * static_cast<int>(output.share.count));
    const int64_t sums_bytes = Carver::bytes<float>(halves * plan.num_sums());
    const int64_t thread_bytes = sums_bytes + Carver::bytes<uint8_t>(unit * decoded_stride());
    uint8_t* scratch = static_cast<uint8_t*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(thread_bytes * pool.size())));
    run_tiles(plan, output, pool, [&](int thread) { return reinterpret_cast<float*>(scratch + thread * thread_bytes); },
              [&](const Tile& tile, int thread, float* sums) {
                  // Many rows read a block of columns several times while it is near; few go through their panels once.
                  const int64_t stretch = tile.num_rows > kMaxCodebookRows ? kFloatBlock : tile_cols();
                  Block block{static_cast<const uint8_t*>(rows), m, tile, 0, 0, 0, scratch + thread * thread_bytes + sums_bytes};
                  for (int64_t c = 0; c < tile_cols(); c += stretch) {
                      for (int64_t p = 0; p < tile.num_panels; p += unit) {
                          block.panel = tile.first_panel + p;
                          block.num_panels = std::min(unit, tile.num_panels - p);
                          for (block.column = c; block.column < std::min(c + stretch, tile_cols()); block.column += kFloatBlock) {
                              multiply_block(block, sums + p * kPanelRows, plan.stride());
                          }
                      }
                  }
                  if (decodes_weights_ || table_unit_ == 1.0f) return;
                  for (int64_t row = 0; row < tile.num_rows; ++row) {
                      float* of_row = sums + row * plan.stride();
                      for (int64_t i = 0; i < tile.num_panels * kPanelRows; ++i) of_row[i] *= table_unit_;
                  }
              });
}

void CodebookMatrix::multiply_block(const Block& block, float* sums, int64_t stride) const {
    const CodeKernels& kernels = kernels_of(type_, kernels_);
    const FloatMultiply product = kernels_.pairs ? products_.bf16 : products_.f32;
    const int64_t columns = std::min<int64_t>(kFloatBlock, tile_cols() - block.column);
    const uint8_t* activations = block.rows + (block.column * block.m + block.tile.first_row * columns) * element_bytes();
    if (decodes_weights_ || kernels.multiply == nullptr) {
        for (int64_t p = 0; p < block.num_panels; ++p) {
            decode(block.panel + p, block.column, columns, block.decoded + p * decoded_stride());
        }
    }
    FloatPanels weights{block.decoded, decoded_stride(), static_cast<int>(block.num_panels), nullptr, 0, true};
    FloatRows from{activations, columns * element_bytes()};
    const bool first = block.column == 0;
    if (decodes_weights_) return product(weights, from, block.tile.num_rows, columns, sums, stride, first);

    const GroupCut cut{block.column, group_, groups() - 1, kPanelRows};
    weights.scales = meta(block.panel) + cut.index(0) * kPanelRows;
    weights.scale_stride = groups() * kPanelRows;
    const int64_t by_codes = kernels.multiply != nullptr ? std::min(block.tile.num_rows, kMaxCodebookRows) : 0;
    const int64_t others = block.tile.num_rows - by_codes;
    const bool together = kernels_.multiply_groups != nullptr && cut.end(0, columns) < columns;
    for (int64_t at = 0; at < columns;) {
        const int64_t end = cut.end(at, columns);
        FloatPanels group = weights;
        group.data += at * kPanelRows * element_bytes();
        group.scales += (cut.index(at) - cut.index(0)) * cut.stride;
        FloatRows of_group{from.data + at * element_bytes(), from.stride};
        const bool fresh = first && at == 0;
        if (by_codes > 0) {
            const CodebookPanels panels{codes(block.panel) + (block.column + at) / 2 * pair_bytes(), pairs() * pair_bytes(),
                                    group.panels, group.scales, group.scale_stride};
            uint8_t* tile = others > 0 ? block.decoded + at * kPanelRows * element_bytes() : nullptr;
            kernels.multiply(panels, rounded_table_, of_group, by_codes, end - at, sums, stride, fresh, {tile, decoded_stride()});
        }
        if (others > 0 && !together) {
            of_group.data += by_codes * from.stride;
            product(group, of_group, others, end - at, sums + by_codes * stride, stride, fresh);
        }
        at = end;
    }
    if (others > 0 && together) {
        from.data += by_codes * from.stride;
        kernels_.multiply_groups(weights, cut, from, others, columns, sums + by_codes * stride, stride, first);
    }
}

float CodebookMatrix::value_of(int64_t panel, int64_t column, int64_t lane) const {
    const uint8_t* pair = codes(panel) + column / 2 * pair_bytes();
    if (type_ == WeightType::table4) return table_[pair[lane] >> (column % 2 * 4) & 0x0f];
    const uint8_t code = pair[2 * lane + column % 2];
    return type_ == WeightType::f8_e4m3 ? e4m3_value(code) : static_cast<float>(code);
}

void CodebookMatrix::row(int64_t r, float* out) const {
    const int64_t panel = r / kPanelRows;
    const int64_t lane = r % kPanelRows;
    for (int64_t c = 0; c < cols_; ++c) {
        const float* scaling = meta(panel) + c / group_ * group_floats() + lane;
        const float zero = decodes_weights_ ? scaling[kPanelRows] : 0.0f;
        out[c] = scaling[0] * (value_of(panel, c, lane) - zero);
    }
}

}  // namespace octavo
