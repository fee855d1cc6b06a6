#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace octavo {

/// How much of a matrix is packed, unit by unit in order, while the rest is multiplied out of its files.
class PackProgress {
public:
    explicit PackProgress(bool complete) : is_complete_(complete) {}

    /// Units packed so far, meaningful until all are.
    int64_t num_packed() const { return num_packed_; }
    /// Any thread may ask.
    bool is_complete() const { return is_complete_.load(); }

    /// Packs about so many bytes more, at least one unit, by `pack(begin, end)`; returns how many it were.
    template <class Pack>
    size_t advance(size_t bytes, int64_t unit_bytes, int64_t num_units, const Pack& pack) {
        const int64_t begin = num_packed_;
        const int64_t end = std::min(begin + std::max<int64_t>(1, static_cast<int64_t>(bytes) / unit_bytes), num_units);
        pack(begin, end);
        num_packed_ = end;
        if (end == num_units) is_complete_.store(true);
        return static_cast<size_t>((end - begin) * unit_bytes);
    }

private:
    int64_t num_packed_ = 0;
    std::atomic<bool> is_complete_;
};

}  // namespace octavo
