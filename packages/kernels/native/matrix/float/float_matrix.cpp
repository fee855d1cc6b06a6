#include "float_matrix.h"

#include <algorithm>
#include <cstring>

#include "../../core/half.h"
#include "float_pack.h"
#include "../in_place/in_place_matrix.h"
#include "../layout.h"

namespace octavo {

namespace {

constexpr int64_t kRowBlock = 256;

const FloatKernelTable& kernels_of(WeightType type) {
    return float_kernels(type == WeightType::bf16 ? KernelKind::bf16 : KernelKind::f32);
}

FloatMultiply kernel_for(WeightType type, const FloatKernelTable& table) {
    if (type == WeightType::f32) return table.f32;
    return type == WeightType::f16 ? table.f16 : table.bf16;
}

}  // namespace

FloatMatrix::FloatMatrix(const SourceStack& stack, ThreadPool& pool)
    : type_(stack.type()),
      rows_(stack.rows()),
      cols_(stack.cols()),
      table_(kernels_of(type_)),
      multiply_(kernel_for(type_, table_)) {
    memory_ = AlignedMemory(bytes());
    const PanelSource source(stack);
    FiniteCheck check;
    pool.parallel_for(panels(), source.grain(), [&](int64_t begin, int64_t end, int) {
        for (int64_t panel = begin; panel < end; ++panel) {
            uint8_t* out = memory_.data() + panel * panel_bytes();
            const int bad = pack_float_panel(type_, source.rows(panel), cols_, out);
            if (bad >= 0) check.found(panel * kPanelRows + bad);
        }
        source.release(begin, end);
    });
    check.require(stack);
}

FloatMatrix::FloatMatrix(WeightType type, int64_t rows, int64_t cols, AlignedMemory packed)
    : type_(type),
      rows_(rows),
      cols_(cols),
      memory_(std::move(packed)),
      table_(kernels_of(type_)),
      multiply_(kernel_for(type_, table_)) {}

FloatMatrix::FloatMatrix(std::unique_ptr<const InPlaceMatrix> in_place)
    : type_(WeightType::bf16),
      rows_(in_place->rows()),
      cols_(in_place->cols()),
      in_place_(std::move(in_place)),
      progress_(false),
      table_(kernels_of(type_)),
      multiply_(kernel_for(type_, table_)) {}

FloatMatrix::~FloatMatrix() = default;

size_t FloatMatrix::pack_more(size_t bytes, ThreadPool& pool) {
    if (in_place_ == nullptr) return 0;
    if (memory_.size() == 0) memory_ = AlignedMemory(this->bytes());
    const size_t packed = progress_.advance(bytes, panel_bytes(), panels(), [&](int64_t begin, int64_t end) {
        in_place_->pack_panels(begin, end, memory_.data() + begin * panel_bytes(), pool);
    });
    if (progress_.is_complete()) in_place_.reset();
    return packed;
}

int64_t FloatMatrix::panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }

int64_t FloatMatrix::packed_cols() const { return type_ == WeightType::bf16 ? (cols_ + 1) / 2 * 2 : cols_; }

int64_t FloatMatrix::column_bytes() const { return (type_ == WeightType::f32 ? 4 : 2) * kPanelRows; }

RowEncoding FloatMatrix::encoding() const {
    return {type_ == WeightType::bf16 ? RowEncoding::Kind::bf16 : RowEncoding::Kind::plain, 0, cols_, nullptr};
}

size_t FloatMatrix::encoded_bytes(int64_t m) const { return static_cast<size_t>(m * packed_cols() * activation_bytes()); }

void FloatMatrix::encode(const float* x, int64_t row, int64_t m, void* rows) const {
    for (int64_t c = 0; c < cols_; c += kFloatBlock) {
        const int64_t packed = std::min<int64_t>(kFloatBlock, packed_cols() - c);
        const int64_t count = std::min<int64_t>(kFloatBlock, cols_ - c);
        uint8_t* out = static_cast<uint8_t*>(rows) + (c * m + row * packed) * activation_bytes();
        if (type_ != WeightType::bf16) {
            std::memcpy(out, x + c, static_cast<size_t>(count) * sizeof(float));
            continue;
        }
        uint16_t* rounded = reinterpret_cast<uint16_t*>(out);
        table_.to_bf16(x + c, count, rounded);
        if (count < packed) rounded[count] = 0;
    }
}

void FloatMatrix::multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                           ThreadPool& pool) const {
    if (m <= 0) return;
    const uint8_t* encoded = static_cast<const uint8_t*>(rows);
    if (in_place_ != nullptr) {
        const auto from_panels = [&](const Tile& tile, float* sums, int64_t stride) {
            if (tile.first_panel + tile.num_panels > progress_.num_packed()) return false;
            multiply_tile(encoded, m, tile, sums, stride);
            return true;
        };
        in_place_->multiply_beside(from_panels, rows, m, output, workspace, pool);
        return;
    }
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const TilePlan plan = plan_tiles(rows_, m, table_.tile_panels, kRowBlock, output.gate != nullptr,
                                     pool.size() * static_cast<int>(output.share.count));
    const int64_t num_sums = halves * plan.num_sums();
    float* scratch = static_cast<float*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(num_sums * pool.size()) * sizeof(float)));
    run_tiles(plan, output, pool, [&](int thread) { return scratch + thread * num_sums; },
              [&](const Tile& tile, int, float* sums) { multiply_tile(encoded, m, tile, sums, plan.stride()); });
}

void FloatMatrix::multiply_tile(const uint8_t* rows, int64_t m, const Tile& tile, float* sums, int64_t stride) const {
    for (int64_t c = 0; c < packed_cols(); c += kFloatBlock) {
        const int64_t columns = std::min<int64_t>(kFloatBlock, packed_cols() - c);
        const FloatPanels weights{memory_.data() + tile.first_panel * panel_bytes() + c * column_bytes(), panel_bytes(),
                                  static_cast<int>(tile.num_panels)};
        const FloatRows block{rows + (c * m + tile.first_row * columns) * activation_bytes(), columns * activation_bytes()};
        multiply_(weights, block, tile.num_rows, columns, sums, stride, c == 0);
    }
}

void FloatMatrix::row(int64_t r, float* out) const {
    if (in_place_ != nullptr && r / kPanelRows >= progress_.num_packed()) return in_place_->row(r, out);
    const uint8_t* panel = memory_.data() + r / kPanelRows * panel_bytes();
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
