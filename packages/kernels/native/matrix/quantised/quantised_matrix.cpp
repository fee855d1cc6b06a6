#include "quantised_matrix.h"

#include <algorithm>

#include "quantised_packer.h"
#include "../tiles.h"

namespace octavo {

namespace {

/// Rows whose sums one task keeps; with 8 panels they take a quarter of a megabyte.
constexpr int64_t kRowBlock = 512;
/// When weights are read once: packed bytes and sums that are computed in one go, of each half of a gated matrix, and the fewest
/// bytes for which a thread asks.
constexpr int64_t kJoinedBytes = int64_t{512} << 10;
constexpr int64_t kJoinedSums = 4096;
constexpr int64_t kLeastBytes = int64_t{32} << 10;

}  // namespace

/// Encoded rows are laid out block of groups by block of groups: all rows of block 0, then of block 1. A block is
/// what is unpacked at once, or all groups where weights are multiplied as they lie packed.
struct QuantisedMatrix::Layout {
    int64_t m;
    int64_t groups;
    int64_t groups_per_block;
    int per_group;
    int8_t* codes;
    float* scales;
    int32_t* corrections;

    Layout(const QuantisedMatrix& matrix, int64_t num_rows, const void* rows)
        : m(num_rows),
          groups(matrix.panels_.groups()),
          groups_per_block(num_rows <= matrix.table_.stream_rows ? groups : matrix.table_.block_groups),
          per_group(corrections_per_group(correction_of(matrix.panels_.traits().scaling))) {
        Carver carver(const_cast<void*>(rows));
        codes = carver.take<int8_t>(m * groups * kGroup);
        scales = carver.take<float>(m * groups);
        corrections = carver.take<int32_t>(m * groups * per_group);
    }

    /// Rows from `row` on, in the block that starts at group `first`.
    QuantisedRows block(int64_t first, int64_t row) const {
        const int64_t count = std::min(groups_per_block, groups - first);
        const int64_t at = first * m + row * count;
        return {codes + at * kGroup, scales + at, corrections + at * per_group, count};
    }
};

QuantisedMatrix::QuantisedMatrix(QuantisedPanels panels)
    : panels_(std::move(panels)),
      progress_(true),
      table_(quantised_kernels()),
      kernels_(table_.formats[panels_.format]) {}

QuantisedMatrix::QuantisedMatrix(std::unique_ptr<const QuantisedPacker> packer)
    : panels_(packer->panels()),
      packer_(std::move(packer)),
      progress_(false),
      table_(quantised_kernels()),
      kernels_(table_.formats[panels_.format]) {}

QuantisedMatrix::~QuantisedMatrix() = default;

const uint8_t* QuantisedMatrix::packed() const { return progress_.is_complete() ? panels_.memory.data() : nullptr; }

size_t QuantisedMatrix::pack_more(size_t bytes, ThreadPool& pool) {
    if (packer_ == nullptr) return 0;
    if (panels_.memory.size() == 0) panels_.memory = AlignedMemory(panels_.bytes());
    const size_t packed = progress_.advance(bytes, panels_.pair_bytes, panels_.pairs(), [&](int64_t begin, int64_t end) {
        packer_->pack_pairs(panels_, begin, end, pool);
    });
    if (progress_.is_complete()) packer_.reset();
    return packed;
}

const uint8_t* QuantisedMatrix::reads_from(int64_t panel) const {
    return has_panels(panel + 1) ? panels_.pair(panel / kPairPanels) : packer_->source(panel);
}

PackedPair QuantisedMatrix::pair(int64_t first, int64_t next, uint8_t* scratch) const {
    // A pair without a second panel repeats the last one; its result is not written.
    const int64_t second = std::min(first + 1, panels_.panels() - 1);
    const uint8_t* later = reads_from(next);
    if (has_panels(second + 1)) {
        const uint8_t* begin = panels_.pair(first / kPairPanels);
        return {{panels_.panel(first), panels_.panel(second)}, begin, begin + panels_.pair_bytes, later};
    }
    PackedPair pair{{}, later, later + panels_.pair_bytes, later + panels_.pair_bytes};
    for (int64_t p = 0; p < kPairPanels; ++p) {
        const int64_t place = first + p <= second ? p : 0;
        pair.panels[p] = panels_.panel_of(scratch, place);
        if (place == p) packer_->pack(first + p, pair.panels[p]);
    }
    return pair;
}

bool QuantisedMatrix::streams(int64_t m) const { return m <= table_.max_stream_rows; }

RowEncoding QuantisedMatrix::encoding() const {
    const Format& format = panels_.traits();
    const Correction correction = correction_of(format.scaling);
    const int zero = has_minima(correction) ? 0 : format.zero;
    const int groups = static_cast<int>(activation_groups(format.scaling));
    return {RowEncoding::Kind::int8, (groups * 4 + static_cast<int>(correction)) * 256 + zero, panels_.cols, nullptr};
}

size_t QuantisedMatrix::encoded_bytes(int64_t m) const {
    const int64_t size = m * panels_.groups();
    const int per_group = corrections_per_group(correction_of(panels_.traits().scaling));
    return static_cast<size_t>(Carver::bytes<int8_t>(size * kGroup) + Carver::bytes<float>(size) +
                               Carver::bytes<int32_t>(size * per_group));
}

void QuantisedMatrix::encode(const float* x, int64_t row, int64_t m, void* rows) const {
    const Layout layout(*this, m, rows);
    for (int64_t g = 0; g < layout.groups; g += layout.groups_per_block) {
        const QuantisedRows at = layout.block(g, row);
        kernels_.quantise(x + g * kGroup, at.stride, const_cast<int8_t*>(at.codes), const_cast<float*>(at.scales),
                          const_cast<int32_t*>(at.corrections));
    }
}

void QuantisedMatrix::multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                               ThreadPool& pool) const {
    if (m <= 0) return;
    const Layout layout(*this, m, rows);
    if (streams(m)) {
        multiply_packed(layout, output, workspace, pool);
    } else {
        multiply_unpacked(layout, output, workspace, pool);
    }
}

void QuantisedMatrix::scale_rows(const Tile& tile, float* sums, int64_t stride) const {
    if (panels_.traits().scaling != Scaling::row) return;
    for (int64_t p = 0; p < tile.num_panels; ++p, sums += kPanelRows) {
        kernels_.scale(panels_.panel(tile.first_panel + p).meta, tile.num_rows, sums, stride);
    }
}

void QuantisedMatrix::multiply_packed(const Layout& rows, const LinearOutput& output, Workspace& workspace,
                                      ThreadPool& pool) const {
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const int64_t panels = panels_.panels();
    const int64_t half = panels / halves;
    // Gate and up are read in turn, enough pairs of each at a time that memory is read in long runs.
    const int64_t joined = std::min(kJoinedBytes / panels_.pair_bytes, kJoinedSums / (kPairPanels * kPanelRows * rows.m));
    const TilePlan plan{panels_.rows, rows.m, kPairPanels, rows.m, std::max<int64_t>(1, joined),
                        std::max<int64_t>(1, kLeastBytes / panels_.pair_bytes)};
    const int64_t num_sums = halves * plan.num_sums();
    const int64_t thread_bytes = Carver::bytes<float>(num_sums) + (packer_ != nullptr ? panels_.pair_bytes : 0);
    uint8_t* scratch = static_cast<uint8_t*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(thread_bytes * pool.size())));
    const auto carver_of = [&](int thread) { return Carver(scratch + thread * thread_bytes); };
    const QuantisedRows at = rows.block(0, 0);
    run_tiles(plan, output, pool, [&](int thread) { return carver_of(thread).take<float>(num_sums); },
              [&](const Tile& tile, int thread, float* sums) {
                  Carver carver = carver_of(thread);
                  carver.take<float>(num_sums);
                  uint8_t* room = carver.take<uint8_t>(panels_.pair_bytes);
                  const int64_t end = tile.first_panel + tile.num_panels;
                  for (int64_t first = tile.first_panel; first < end; first += kPairPanels) {
                      int64_t next = first + kPairPanels;
                      if (halves == 2 && next >= end) next = tile.first_panel < half ? tile.first_panel + half : end - half;
                      float* out = sums + (first - tile.first_panel) * kPanelRows;
                      kernels_.stream(pair(first, std::min(next, panels - 1), room), rows.groups, at, rows.m, out, plan.stride());
                  }
                  scale_rows(tile, sums, plan.stride());
              });
}

void QuantisedMatrix::multiply_unpacked(const Layout& rows, const LinearOutput& output, Workspace& workspace,
                                        ThreadPool& pool) const {
    const int64_t block = rows.groups_per_block;
    const Correction correction = correction_of(panels_.traits().scaling);
    const int64_t halves = output.gate != nullptr ? 2 : 1;
    const TilePlan plan = plan_tiles(panels_.rows, rows.m, table_.tile_panels, kRowBlock, output.gate != nullptr,
                                     pool.size() * static_cast<int>(output.share.count));
    const int64_t tile_panels = plan.tile_panels;

    const int64_t num_codes = tile_panels * block * kGroupCodes;
    const int64_t num_scales = tile_panels * block * scales_per_group(correction) * kPanelRows;
    const int64_t num_minima = tile_panels * block * minima_per_group(correction) * kPanelRows;
    const int64_t num_sums = halves * plan.num_sums();
    const int64_t room_bytes = packer_ != nullptr ? (tile_panels + 1) / kPairPanels * panels_.pair_bytes : 0;
    const int64_t thread_bytes = Carver::bytes<float>(num_sums) + Carver::bytes<uint8_t>(num_codes) +
                                 Carver::bytes<float>(num_scales) + Carver::bytes<float>(num_minima) +
                                 Carver::bytes<uint8_t>(room_bytes);
    uint8_t* scratch = static_cast<uint8_t*>(
        workspace.get(Workspace::kScratchSlot, static_cast<size_t>(thread_bytes * pool.size())));
    const auto sums_of = [&](int thread) { return reinterpret_cast<float*>(scratch + thread * thread_bytes); };

    run_tiles(plan, output, pool, sums_of, [&](const Tile& tile, int thread, float* sums) {
        Carver carver(scratch + thread * thread_bytes);
        carver.take<float>(num_sums);
        uint8_t* codes = carver.take<uint8_t>(num_codes);
        float* scales = carver.take<float>(num_scales);
        float* minima = carver.take<float>(num_minima);
        const bool is_packed = has_panels(tile.first_panel + tile.num_panels);
        uint8_t* room = carver.take<uint8_t>(room_bytes);
        const auto panel = [&](int p) {
            return is_packed ? panels_.panel(tile.first_panel + p)
                             : panels_.panel_of(room + p / kPairPanels * panels_.pair_bytes, p % kPairPanels);
        };
        const int num_panels = static_cast<int>(tile.num_panels);
        for (int p = 0; p < num_panels && !is_packed; ++p) packer_->pack(tile.first_panel + p, panel(p));
        for (int64_t g = 0; g < rows.groups; g += block) {
            const int64_t count = std::min(block, rows.groups - g);
            const QuantisedRows at_rows = rows.block(g, tile.first_row);
            for (int p = 0, taken = 0; p < num_panels && kernels_.in_place; p += taken) {
                // The upper half of a gated matrix may begin with the second panel of a pair.
                taken = (tile.first_panel + p) % kPairPanels == 0 ? std::min(kPairPanels, num_panels - p) : 1;
                kernels_.multiply(UnpackedPanels::in_place(panel(p), g, taken, count), at_rows, tile.num_rows, sums + p * kPanelRows,
                                  plan.stride(), g == 0);
            }
            if (kernels_.in_place) continue;
            for (int p = 0; p < num_panels; ++p) {
                const int64_t at = p * count;
                kernels_.unpack(panel(p), g, count, codes + at * kGroupCodes, scales + at * scales_per_group(correction) * kPanelRows,
                                minima + at * minima_per_group(correction) * kPanelRows);
            }
            kernels_.multiply(UnpackedPanels::of(codes, scales, minima, num_panels, count), at_rows, tile.num_rows, sums, plan.stride(), g == 0);
        }
        scale_rows(tile, sums, plan.stride());
    });
}

}  // namespace octavo
