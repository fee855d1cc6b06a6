#pragma once
#include <algorithm>
#include <cstring>

#include "../core/thread_pool.h"
#include "../ops/kernels.h"
#include "layout.h"
#include "matrix.h"

namespace octavo {

inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

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

/// A tile of products: neighbouring panels times neighbouring activation rows.
struct Tile {
    int64_t first_panel;
    int64_t num_panels;
    int64_t first_row;
    int64_t num_rows;
};

/// How the tiles of a product are cut and shared out.
struct TilePlan {
    int64_t output_rows;
    int64_t m;
    int64_t tile_panels;
    int64_t row_block;
    /// Neighbouring tiles that are computed as one when a thread has so many; all rows are one block then.
    int64_t joined = 1;
    /// The fewest tiles worth taking.
    int64_t grain = 1;

    int64_t stride() const { return joined * tile_panels * kPanelRows; }
    int64_t num_sums() const { return std::min(row_block, m) * stride(); }
};

/// Cuts a product of many rows. `unit` panels are what a kernel takes at a time; four times as many read the activations,
/// which may outgrow the second-level cache, a quarter as often. A narrow matrix is cut finer, so that every thread has work.
inline TilePlan plan_tiles(int64_t output_rows, int64_t m, int64_t unit, int64_t row_block, bool gated, int num_threads) {
    const int64_t panels = (output_rows + kPanelRows - 1) / kPanelRows / (gated ? 2 : 1);
    const auto tiles = [&](int64_t tile_panels) { return panels / tile_panels * ((m + row_block - 1) / row_block); };
    const int64_t tile_panels = tiles(4 * unit) >= 4 * num_threads ? 4 * unit : unit;
    return {output_rows, m, tile_panels, panels < 2 * tile_panels * num_threads ? row_block / 4 : row_block};
}

/// Computes every tile and writes it. `compute(tile, thread, sums)` leaves the sum of row r and output i of the tile in
/// sums[r * stride + i]. `sums_of(thread)` is room for num_sums() floats, twice as many with a gate.
template <class Compute, class SumsOf>
void run_tiles(const TilePlan& plan, const LinearOutput& output, ThreadPool& pool, const SumsOf& sums_of, const Compute& compute) {
    const int64_t stride = plan.stride();
    const int64_t width = output.gate != nullptr ? plan.output_rows / 2 : plan.output_rows;
    const int64_t panels = (width + kPanelRows - 1) / kPanelRows;
    const int64_t num_tiles = (panels + plan.tile_panels - 1) / plan.tile_panels;
    const int64_t num_row_blocks = (plan.m + plan.row_block - 1) / plan.row_block;
    const auto add_bias = [&](const Tile& tile, float* sums, int64_t count) {
        if (output.bias == nullptr) return;
        const float* bias = output.bias + tile.first_panel * kPanelRows;
        for (int64_t row = 0; row < tile.num_rows; ++row) op_kernels().add(bias, sums + row * stride, count);
    };
    const int64_t num_tasks = num_tiles * num_row_blocks;
    const int64_t first_task = num_tasks * output.share.index / output.share.count;
    const int64_t end_task = num_tasks * (output.share.index + 1) / output.share.count;
    pool.parallel_for(end_task - first_task, plan.grain, [&](int64_t begin, int64_t end, int thread) {
        float* sums = sums_of(thread);
        int64_t num_joined = 1;
        for (int64_t task = first_task + begin; task < first_task + end; task += num_joined) {
            num_joined = std::min(plan.joined, first_task + end - task);
            Tile tile;
            tile.first_panel = task / num_row_blocks * plan.tile_panels;
            tile.num_panels = std::min(num_joined * plan.tile_panels, panels - tile.first_panel);
            tile.first_row = task % num_row_blocks * plan.row_block;
            tile.num_rows = std::min(plan.row_block, plan.m - tile.first_row);
            const int64_t column = tile.first_panel * kPanelRows;
            const int64_t count = std::min(tile.num_panels * kPanelRows, width - column);
            compute(tile, thread, sums);
            add_bias(tile, sums, count);
            if (output.gate != nullptr) {
                Tile up = tile;
                up.first_panel += panels;
                float* up_sums = sums + plan.num_sums();
                compute(up, thread, up_sums);
                add_bias(up, up_sums, count);
                if (count == stride) {
                    (*output.gate)(sums, up_sums, sums, tile.num_rows * stride);
                } else {
                    for (int64_t row = 0; row < tile.num_rows; ++row) {
                        (*output.gate)(sums + row * stride, up_sums + row * stride, sums + row * stride, count);
                    }
                }
            }
            for (int64_t row = 0; row < tile.num_rows; ++row) {
                std::memcpy(output.y + (tile.first_row + row) * output.ldy + column, sums + row * stride,
                            static_cast<size_t>(count) * sizeof(float));
            }
        }
    });
}

}  // namespace octavo
