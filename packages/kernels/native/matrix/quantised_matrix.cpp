#include "quantised_matrix.h"

#include <algorithm>

#include "../core/half.h"

namespace octavo {

namespace {

constexpr int kRowsSlot = 0;
constexpr int kScratchSlot = 1;
/// Rows whose sums one task keeps; with 4 panels they fit a quarter of a megabyte.
constexpr int64_t kRowBlock = 512;
/// Below this many activations, quantising them is not worth waking a thread for.
constexpr int64_t kSerialActivations = 16384;
/// Packed bytes that a thread takes at a time when weights are read once.
constexpr int64_t kStreamBytes = int64_t{96} << 10;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Carves aligned arrays out of one buffer.
class Carver {
public:
    explicit Carver(void* base) : at_(static_cast<uint8_t*>(base)) {}
    template <class T>
    T* take(int64_t count) {
        T* array = reinterpret_cast<T*>(at_);
        at_ += bytes<T>(count);
        return array;
    }
    template <class T>
    static int64_t bytes(int64_t count) {
        return round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    }

private:
    uint8_t* at_;
};

}  // namespace

/// Quantised rows are laid out block of groups by block of groups: all rows of block 0, then of block 1. A block is
/// what `multiply` unpacks at once, or all groups when weights are streamed.
struct QuantisedMatrix::Call {
    const float* x;
    int64_t ldx;
    int64_t m;
    float* y;
    int64_t ldy;
    const float* bias;
    Workspace& workspace;
    ThreadPool& pool;
    int64_t groups_per_block;
    int8_t* codes;
    float* scales;
    int32_t* corrections;
};

QuantisedMatrix::QuantisedMatrix(QuantisedPanels panels)
    : panels_(std::move(panels)),
      table_(quantised_kernels()),
      kernels_(table_.formats[static_cast<int>(panels_.format)]) {}

void QuantisedMatrix::linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias,
                             Workspace& workspace, ThreadPool& pool) const {
    if (m <= 0) return;
    const int64_t groups = panels_.groups();
    const int per_group = corrections_per_group(correction_of(panels_.traits().scaling));
    const bool streamed = m <= table_.max_stream_rows;
    const int64_t size = m * groups;
    Carver carver(workspace.get(kRowsSlot, static_cast<size_t>(Carver::bytes<int8_t>(size * kGroup) + Carver::bytes<float>(size) +
                                                               Carver::bytes<int32_t>(size * per_group))));
    Call call{x, ldx, m, y, ldy, bias, workspace, pool, streamed ? groups : table_.block_groups, nullptr, nullptr, nullptr};
    call.codes = carver.take<int8_t>(size * kGroup);
    call.scales = carver.take<float>(size);
    call.corrections = carver.take<int32_t>(size * per_group);

    const auto quantise = [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
            for (int64_t g = 0; g < groups; g += call.groups_per_block) {
                const int64_t count = std::min(call.groups_per_block, groups - g);
                const int64_t at = g * m + row * count;
                kernels_.quantise(x + row * ldx + g * kGroup, count, call.codes + at * kGroup, call.scales + at,
                                  call.corrections + at * per_group);
            }
        }
    };
    if (m * panels_.cols <= kSerialActivations) {
        quantise(0, m, 0);
    } else {
        pool.parallel_for(m, std::max<int64_t>(1, kSerialActivations / 2 / panels_.cols), quantise);
    }
    if (streamed) {
        stream(call);
    } else {
        multiply(call);
    }
}

void QuantisedMatrix::stream(const Call& call) const {
    const int64_t step = table_.stream_panels;
    const int64_t num_tiles = (panels_.panels() + step - 1) / step;
    const int64_t grain = std::max<int64_t>(1, kStreamBytes / (step * panels_.panel_stride));
    const QuantisedRows rows{call.codes, call.scales, call.corrections, panels_.groups()};
    call.pool.parallel_for(num_tiles, grain, [&](int64_t begin, int64_t end, int) {
        alignas(64) float sums[kMostStreamRows * kMaxStreamPanels * kPanelRows];
        for (int64_t tile = begin; tile < end; ++tile) {
            const int64_t first = tile * step;
            const int64_t count = std::min(step, panels_.panels() - first);
            PanelView views[kMaxStreamPanels];
            // A tile that lacks panels takes the last one again; what it gives is not written.
            for (int64_t p = 0; p < step; ++p) views[p] = panels_.panel(first + std::min(p, count - 1));
            kernels_.stream(views, panels_.groups(), rows, call.m, sums);
            for (int64_t p = 0; p < count; ++p) write(call, first + p, 0, call.m, sums + p * kPanelRows, step * kPanelRows);
        }
    });
}

void QuantisedMatrix::multiply(const Call& call) const {
    const int64_t groups = panels_.groups();
    const int64_t tile_panels = table_.tile_panels;
    const int64_t block = call.groups_per_block;
    const Correction correction = correction_of(panels_.traits().scaling);
    const int per_group = corrections_per_group(correction);
    const int64_t num_tiles = (panels_.panels() + tile_panels - 1) / tile_panels;
    // Few tiles (a narrow matrix): cut the rows finer, so that every thread has work.
    const int64_t row_block = num_tiles >= 2 * call.pool.size() ? kRowBlock : kRowBlock / 4;
    const int64_t num_row_blocks = (call.m + row_block - 1) / row_block;

    const int64_t num_codes = tile_panels * block * kGroupCodes;
    const int64_t num_scales = tile_panels * block * scales_per_group(correction) * kPanelRows;
    const int64_t num_minima = correction == Correction::minimum ? tile_panels * block * kPanelRows : 0;
    const int64_t stride = tile_panels * kPanelRows;
    const int64_t num_sums = std::min(row_block, call.m) * stride;
    const int64_t thread_bytes = Carver::bytes<uint8_t>(num_codes) + Carver::bytes<float>(num_scales) +
                                 Carver::bytes<float>(num_minima) + Carver::bytes<float>(num_sums);
    uint8_t* scratch =
        static_cast<uint8_t*>(call.workspace.get(kScratchSlot, static_cast<size_t>(thread_bytes * call.pool.size())));

    call.pool.parallel_for(num_tiles * num_row_blocks, 1, [&](int64_t task, int64_t, int thread) {
        const int64_t first_panel = task / num_row_blocks * tile_panels;
        const int64_t first_row = task % num_row_blocks * row_block;
        const int64_t num_rows = std::min(row_block, call.m - first_row);
        Carver carver(scratch + thread * thread_bytes);
        UnpackedPanels weights;
        weights.codes = carver.take<uint8_t>(num_codes);
        weights.scales = carver.take<float>(num_scales);
        weights.minima = carver.take<float>(num_minima);
        weights.panels = static_cast<int>(std::min(tile_panels, panels_.panels() - first_panel));
        float* sums = carver.take<float>(num_sums);
        for (int64_t g = 0; g < groups; g += block) {
            weights.groups = std::min(block, groups - g);
            for (int p = 0; p < weights.panels; ++p) {
                const int64_t at = p * weights.groups;
                kernels_.unpack(panels_.panel(first_panel + p), g, weights.groups, weights.codes + at * kGroupCodes,
                                weights.scales + at * scales_per_group(correction) * kPanelRows,
                                weights.minima + (num_minima > 0 ? at * kPanelRows : 0));
            }
            const int64_t at = g * call.m + first_row * weights.groups;
            const QuantisedRows rows{call.codes + at * kGroup, call.scales + at, call.corrections + at * per_group,
                                     weights.groups};
            kernels_.multiply(weights, rows, num_rows, sums, stride, g == 0);
        }
        for (int p = 0; p < weights.panels; ++p) {
            write(call, first_panel + p, first_row, num_rows, sums + p * kPanelRows, stride);
        }
    });
}

void QuantisedMatrix::write(const Call& call, int64_t panel, int64_t first_row, int64_t num_rows, const float* sums,
                            int64_t stride) const {
    const int64_t column = panel * kPanelRows;
    const int count = static_cast<int>(std::min<int64_t>(kPanelRows, panels_.rows - column));
    for (int64_t row = 0; row < num_rows; ++row) {
        float* out = call.y + (first_row + row) * call.ldy + column;
        const float* sum = sums + row * stride;
        if (call.bias != nullptr) {
            for (int i = 0; i < count; ++i) out[i] = sum[i] + call.bias[column + i];
        } else {
            for (int i = 0; i < count; ++i) out[i] = sum[i];
        }
    }
}

}  // namespace octavo
