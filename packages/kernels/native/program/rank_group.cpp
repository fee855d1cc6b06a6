#include "rank_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "../core/spin.h"
#include "../ops/rows.h"

namespace octavo {

namespace {

/// Small enough to stay in a cache that cores share; longer exchanges take several rounds.
constexpr int64_t kAreaFloats = int64_t{1} << 19;

}  // namespace

RankGroup::RankGroup(int64_t size, int64_t widest)
    : size_(size),
      capacity_((std::max(kAreaFloats, widest) + 15) / 16 * 16),
      memory_(static_cast<size_t>(2 * capacity_) * sizeof(float)) {}

void RankGroup::meet() {
    const uint64_t seen = met_.load(std::memory_order_acquire);
    if (failed_.load(std::memory_order_acquire)) throw std::runtime_error("another rank of the model has failed");
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
        arrived_.store(0, std::memory_order_relaxed);
        met_.fetch_add(1, std::memory_order_seq_cst);
        if (sleeping_.load(std::memory_order_seq_cst) > 0) {
            const std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
        return;
    }
    const auto over = [&] {
        return met_.load(std::memory_order_seq_cst) != seen || failed_.load(std::memory_order_seq_cst);
    };
    if (!spin_until(over)) {
        std::unique_lock<std::mutex> lock(mutex_);
        sleeping_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, over);
        sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
    if (met_.load(std::memory_order_acquire) == seen) throw std::runtime_error("another rank of the model has failed");
}

void RankGroup::fail() noexcept {
    failed_.store(true, std::memory_order_seq_cst);
    const std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
}

void RankGroup::reset() noexcept {
    arrived_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_seq_cst);
}

void Rank::begin_step() {
    // Also after a step that failed on some of them, ranks use the same area.
    round_ = 0;
    bytes_ = 0;
    milliseconds_ = 0.0;
    if (group_) group_->meet();
}

void Rank::exchange(Rows rows, int64_t num_rows, int64_t width, ExchangeKind kind, ThreadPool& pool) {
    if (!group_) return;
    const auto start = std::chrono::steady_clock::now();
    const RankPart own = kind != ExchangeKind::first ? part_of(width) : RankPart{0, is_first() ? width : 0};
    const bool receives = kind != ExchangeKind::parts_to_first || is_first();
    const int64_t rows_at_once = group_->capacity_ / width;
    for (int64_t begun = 0; begun < num_rows; begun += rows_at_once) {
        const int64_t count = std::min(rows_at_once, num_rows - begun);
        float* area = group_->area(round_++);
        const auto copy = [&](RankPart part, bool out) {
            if (part.width == 0) return;
            for_rows(pool, count, part.width / 8, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; i++) {
                    float* mine = rows.row(begun + i) + part.first;
                    float* shared = area + i * width + part.first;
                    std::memcpy(out ? shared : mine, out ? mine : shared, static_cast<size_t>(part.width) * sizeof(float));
                }
            });
        };
        // The first rank's own columns are read by the others only.
        if (kind != ExchangeKind::parts_to_first || !is_first()) copy(own, true);
        group_->meet();
        if (!receives) continue;
        copy({0, own.first}, false);
        copy({own.first + own.width, width - own.first - own.width}, false);
        bytes_ += count * (width - own.width) * static_cast<int64_t>(sizeof(float));
    }
    milliseconds_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace octavo
