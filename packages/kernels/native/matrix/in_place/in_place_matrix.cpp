#include "in_place_matrix.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "../../core/half.h"
#include "../../core/isa.h"
#include "../tiles.h"

namespace octavo {

namespace {

/// Twice FloatMatrix's, since every block of rows unpacks the weights again.
constexpr int64_t kRowBlock = 512;
/// Bytes of weights that a thread takes at a time when they are read once: long enough for reading ahead.
constexpr int64_t kStreamBytes = int64_t{512} << 10;
/// With more patterns, the spread activations would push the weights out of the first-level cache.
constexpr int64_t kMaxPatterns = 8;
/// Fetches of what comes next while one group of panels is multiplied, by at least so many activation rows each.
constexpr int64_t kMostFetches = 21;
constexpr int64_t kLeastRowsPerFetch = 6;
/// Up to this many activation rows, transposing the weights once for every few rows costs less than unpacking them.
constexpr int64_t kMaxFewRows = 16;
/// Bytes that a thread packs at a time.
constexpr int64_t kPackBytes = int64_t{1} << 20;
constexpr int64_t kPanelBlockBytes = kFloatBlock * 2 * kPanelRows;

}  // namespace

int64_t spread_patterns(int64_t blocks) { return blocks / std::gcd<int64_t>(blocks, 16); }

const InPlaceKernelTable* in_place_kernels() {
#if defined(__x86_64__)
    const KernelPath path = kernel_path(KernelKind::bf16);
    if (path == KernelPath::avx512_bf16) return &in_place_kernels_avx512_bf16;
    if (path == KernelPath::avx512) return &in_place_kernels_avx512;
#endif
    return nullptr;
}

bool InPlaceMatrix::suits(const std::vector<MatrixSource>& sources) {
    if (in_place_kernels() == nullptr) return false;
    for (const MatrixSource& source : sources) {
        const bool is_last = &source == &sources.back();
        if (source.type != WeightType::bf16 || source.file == nullptr || !source.column_order.empty()) return false;
        if (source.cols % kFloatBlock != 0 || (source.rows % kPanelRows != 0 && !is_last)) return false;
    }
    return true;
}

InPlaceMatrix::InPlaceMatrix(const SourceStack& stack, ThreadPool& pool)
    : rows_(stack.rows()), cols_(stack.cols()), table_(float_kernels(KernelKind::bf16)), kernels_(*in_place_kernels()) {
    check_in_files(stack, [&](const uint8_t* row) { return kernels_.finite(row, cols_); }, pool);
    for (const MatrixSource& source : stack.sources()) {
        for (int64_t row = 0; row < source.rows; row += kPanelRows) panels_.push_back(source.values + row * row_bytes());
        files_.push_back({source.file, num_panels()});
    }
    const int64_t left = rows_ % kPanelRows;
    if (left == 0) return;
    last_ = AlignedMemory(static_cast<size_t>(kPanelRows * row_bytes()));
    std::memcpy(last_.data(), panels_.back(), static_cast<size_t>(left * row_bytes()));
    panels_.back() = last_.data();
}

WeightRows InPlaceMatrix::panel(int64_t index) const {
    const size_t at = static_cast<size_t>(index);
    return {panels_[at], blocks(), panels_[std::min(at + 1, panels_.size() - 1)]};
}

void InPlaceMatrix::encode(const float* x, int64_t row, int64_t m, void* rows) const {
    for (int64_t c = 0; c < cols_; c += kFloatBlock) {
        table_.to_bf16(x + c, kFloatBlock, static_cast<uint16_t*>(rows) + c * m + row * kFloatBlock);
    }
}

void InPlaceMatrix::multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                             ThreadPool& pool) const {
    multiply_beside([](const Tile&, float*, int64_t) { return false; }, rows, m, output, workspace, pool);
}

void InPlaceMatrix::multiply_beside(const OtherTiles& others, const void* rows, int64_t m, const LinearOutput& output,
                                    Workspace& workspace, ThreadPool& pool) const {
    if (m <= 0) return;
    const uint8_t* encoded = static_cast<const uint8_t*>(rows);
    if (m <= kMaxFewRows) {
        multiply_few(others, encoded, m, output, workspace, pool);
    } else {
        multiply_many(others, encoded, m, output, workspace, pool);
    }
}

void InPlaceMatrix::multiply_few(const OtherTiles& others, const uint8_t* rows, int64_t m, const LinearOutput& output,
                                 Workspace& workspace, ThreadPool& pool) const {
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const int64_t panel_bytes = kPanelRows * row_bytes();
    const int64_t num_threads = pool.size() * output.share.count;
    const int64_t tile_panels = std::clamp<int64_t>(num_panels() / halves / (4 * num_threads), 1,
                                                    std::max<int64_t>(1, kStreamBytes / panel_bytes));
    const TilePlan plan{rows_, m, tile_panels, m};
    const bool is_spread = m == 1 && spread_patterns(blocks()) <= kMaxPatterns;
    const int64_t num_sums = halves * plan.num_sums();
    const int64_t num_partial = is_spread ? kPanelRows * blocks() : 0;
    const int64_t spread_size = is_spread ? spread_bytes(blocks()) : 0;
    const int64_t thread_bytes = Carver::bytes<float>(num_sums) + Carver::bytes<float>(num_partial);
    uint8_t* scratch = static_cast<uint8_t*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(spread_size + thread_bytes * pool.size())));
    if (is_spread) kernels_.spread(rows, blocks(), scratch);
    const auto carver_of = [&](int thread) { return Carver(scratch + spread_size + thread * thread_bytes); };
    run_tiles(plan, output, pool, [&](int thread) { return carver_of(thread).take<float>(num_sums); },
              [&](const Tile& tile, int thread, float* sums) {
                  if (others(tile, sums, plan.stride())) return;
                  Carver carver = carver_of(thread);
                  carver.take<float>(num_sums);
                  float* partial = carver.take<float>(num_partial);
                  for (int64_t p = 0; p < tile.num_panels; ++p) {
                      const WeightRows weights = panel(tile.first_panel + p);
                      float* out = sums + p * kPanelRows;
                      if (is_spread) {
                          kernels_.multiply_one(weights, scratch, partial, out);
                      } else {
                          kernels_.multiply(weights, rows, m, out, plan.stride());
                      }
                  }
              });
}

void InPlaceMatrix::multiply_many(const OtherTiles& others, const uint8_t* rows, int64_t m, const LinearOutput& output,
                                  Workspace& workspace, ThreadPool& pool) const {
    const int64_t step = table_.tile_panels;
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const TilePlan plan =
        plan_tiles(rows_, m, step, kRowBlock, output.gate != nullptr, pool.size() * static_cast<int>(output.share.count));
    const int64_t num_sums = halves * plan.num_sums();
    const int64_t thread_bytes = Carver::bytes<float>(num_sums) + Carver::bytes<uint8_t>(step * kPanelBlockBytes);
    uint8_t* scratch = static_cast<uint8_t*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(thread_bytes * pool.size())));
    const auto carver_of = [&](int thread) { return Carver(scratch + thread * thread_bytes); };
    const auto compute = [&](const Tile& tile, int thread, float* sums) {
        if (others(tile, sums, plan.stride())) return;
        Carver carver = carver_of(thread);
        carver.take<float>(num_sums);
        uint8_t* unpacked = carver.take<uint8_t>(step * kPanelBlockBytes);
        const int64_t num_groups = (tile.num_panels + step - 1) / step;
        for (int64_t at = 0; at < blocks() * num_groups; ++at) {
            const PanelBlocks now = panel_blocks(tile, at, num_groups);
            for (int64_t p = 0; p < now.count; ++p) {
                kernels_.unpack(now.panels[p] + now.block * kFloatBlock * 2, row_bytes(), unpacked + p * kPanelBlockBytes);
            }
            const FloatPanels weights{unpacked, kPanelBlockBytes, static_cast<int>(now.count), nullptr, 0, true};
            const PanelBlocks next = at + 1 < blocks() * num_groups ? panel_blocks(tile, at + 1, num_groups) : now;
            // The next weights are prefetched while these are multiplied, a few lines at a time: all at once would stall.
            const int64_t rows_per_fetch = std::max(kLeastRowsPerFetch, round_up(tile.num_rows / kMostFetches, kLeastRowsPerFetch));
            int64_t fetched = 0;
            for (int64_t row = 0; row < tile.num_rows; row += rows_per_fetch) {
                const int64_t count = std::min(rows_per_fetch, tile.num_rows - row);
                const int64_t wanted = next.count * kPanelRows * (row + count) / tile.num_rows;
                for (; fetched < wanted; ++fetched) {
                    const uint8_t* panel = next.panels[fetched / kPanelRows];
                    kernels_.prefetch(panel + fetched % kPanelRows * row_bytes() + next.block * kFloatBlock * 2, kFloatBlock * 2 / 64);
                }
                const FloatRows some{rows + (now.block * m + tile.first_row + row) * kFloatBlock * 2, kFloatBlock * 2};
                table_.bf16(weights, some, count, kFloatBlock, sums + row * plan.stride() + now.first * kPanelRows, plan.stride(),
                            now.block == 0);
            }
        }
    };
    run_tiles(plan, output, pool, [&](int thread) { return carver_of(thread).take<float>(num_sums); }, compute);
}

InPlaceMatrix::PanelBlocks InPlaceMatrix::panel_blocks(const Tile& tile, int64_t index, int64_t num_groups) const {
    const int64_t first = index % num_groups * table_.tile_panels;
    const int64_t count = std::min<int64_t>(table_.tile_panels, tile.num_panels - first);
    return {panels_.data() + tile.first_panel + first, first, count, index / num_groups};
}

void InPlaceMatrix::row(int64_t r, float* out) const {
    const uint8_t* values = panels_[static_cast<size_t>(r / kPanelRows)] + r % kPanelRows * row_bytes();
    for (int64_t c = 0; c < cols_; ++c) {
        uint16_t value;
        std::memcpy(&value, values + 2 * c, sizeof value);
        out[c] = bf16_to_f32(value);
    }
}

void InPlaceMatrix::pack_panels(int64_t begin, int64_t end, uint8_t* out, ThreadPool& pool) const {
    const int64_t panel_bytes = kPanelRows * row_bytes();
    const int64_t grain = std::max<int64_t>(1, kPackBytes / panel_bytes);
    pool.parallel_for(end - begin, grain, [&](int64_t from, int64_t to, int) {
        for (int64_t i = from; i < to; ++i) {
            const uint8_t* panel = panels_[static_cast<size_t>(begin + i)];
            for (int64_t block = 0; block < blocks(); ++block) {
                kernels_.unpack(panel + block * kFloatBlock * 2, row_bytes(), out + i * panel_bytes + block * kPanelBlockBytes);
            }
        }
        release(begin + from, begin + to);
    });
}

void InPlaceMatrix::release(int64_t begin, int64_t end) const {
    for (const File& file : files_) {
        const int64_t last = std::min(end, file.end_panel);
        // The last rows may lie elsewhere, and are too few to matter.
        const int64_t in_file = last == num_panels() && last_.size() > 0 ? last - 1 : last;
        if (begin < in_file) {
            const size_t offset = static_cast<size_t>(panels_[static_cast<size_t>(begin)] - file.mapping->data());
            file.mapping->release(offset, static_cast<size_t>((in_file - begin) * kPanelRows * row_bytes()));
        }
        begin = std::max(begin, last);
    }
}

}  // namespace octavo
