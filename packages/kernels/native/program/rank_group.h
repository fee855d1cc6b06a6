#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "../core/aligned_memory.h"
#include "../core/thread_pool.h"
#include "../ops/attention/attention.h"

namespace octavo {

/// What `rank` of `count` has of `total` columns or rows.
struct RankPart {
    int64_t first;
    int64_t width;
};
constexpr RankPart rank_part(int64_t total, int64_t count, int64_t rank) {
    const int64_t first = total * rank / count;
    return {first, total * (rank + 1) / count - first};
}

/// Where ranks, which run one program on threads of their own, hand each other columns of rows. Nothing is ever added up: a rank
/// receives the bits that another computed, so that results do not depend on how many ranks there are.
class RankGroup {
public:
    /// `widest`: columns of the widest rows that are exchanged. Throws std::bad_alloc.
    RankGroup(int64_t size, int64_t widest);

    int64_t size() const { return size_; }

    /// All ranks leave what waits, and throw, until `reset`.
    void fail() noexcept;
    /// Only while no rank runs.
    void reset() noexcept;

private:
    friend class Rank;

    float* area(int64_t round) const { return reinterpret_cast<float*>(memory_.data()) + round % 2 * capacity_; }
    /// Returns when all ranks have come. Throws std::runtime_error when one has failed.
    void meet();

    const int64_t size_;
    /// Floats of one area.
    const int64_t capacity_;
    /// Two areas in turn: whoever writes one again has met the others since they read it.
    AlignedMemory memory_;
    alignas(64) std::atomic<int64_t> arrived_{0};
    alignas(64) std::atomic<uint64_t> met_{0};
    alignas(64) std::atomic<bool> failed_{false};
    std::atomic<int> sleeping_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
};

/// Who has what of rows that are exchanged, and who wants them.
enum class ExchangeKind {
    /// Each rank its part of the columns; all ranks get all.
    parts,
    /// Each rank its part; the first gets all.
    parts_to_first,
    /// The first rank has all; all get them.
    first,
};

/// One rank of a group, as its executor uses it.
class Rank {
public:
    Rank() = default;
    Rank(std::shared_ptr<RankGroup> group, int64_t index) : group_(std::move(group)), index_(index) {}

    bool is_alone() const { return group_ == nullptr; }
    bool is_first() const { return index_ == 0; }
    RankPart part_of(int64_t total) const { return is_alone() ? RankPart{0, total} : rank_part(total, group_->size(), index_); }
    void begin_step();
    void fail() const noexcept {
        if (group_) group_->fail();
    }
    /// Fills in the columns of `rows` that others have. All ranks call it in the same order with the same shapes.
    void exchange(Rows rows, int64_t num_rows, int64_t width, ExchangeKind kind, ThreadPool& pool);

    int64_t bytes_received() const { return bytes_; }
    double milliseconds() const { return milliseconds_; }

private:
    std::shared_ptr<RankGroup> group_;
    int64_t index_ = 0;
    int64_t round_ = 0;
    int64_t bytes_ = 0;
    double milliseconds_ = 0.0;
};

}  // namespace octavo
