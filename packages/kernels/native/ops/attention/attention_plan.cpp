#include "attention_plan.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace octavo {

namespace {

/// Rows of a tile: enough that bringing a chunk of keys and values to the kernel's form costs little beside using it, few
/// enough that their queries and sums stay in a core's cache.
constexpr int64_t tile_bytes = 80 << 10;
/// Rows of one head up to which a unit takes all heads.
constexpr int64_t most_rows_of_all_heads = 16;
/// Units for each thread, so that threads end together.
constexpr int64_t units_per_thread = 4;

int64_t blocks_of(const StepLayout& step, const AttentionCut& cut, int32_t sequence) {
    return (step.context_lengths[sequence] + cut.block_size - 1) / cut.block_size;
}

const int32_t* table_of(const StepLayout& step, int32_t sequence) {
    return step.block_tables + step.block_table_starts[sequence];
}

/// Leading entries that two tables have in common.
int64_t common_length(const int32_t* a, const int32_t* b, int64_t length) {
    constexpr int64_t run = 64;
    int64_t i = 0;
    while (i + run <= length && std::memcmp(a + i, b + i, run * sizeof(int32_t)) == 0) i += run;
    while (i < length && a[i] == b[i]) i++;
    return i;
}

}  // namespace

void AttentionPlan::build(const StepLayout& step, const AttentionCut& cut, int num_threads) {
    cut_ = cut;
    members_.clear();
    tiles_.clear();
    units_.clear();
    few_.clear();
    most_rows_ = num_splits_ = num_partials_ = cost_ = 0;
    const int64_t row_bytes = 3 * attention_stride(cut.head_dim) * static_cast<int64_t>(sizeof(float));
    const int64_t group = cut.group();
    const int64_t tokens_per_tile = std::max<int64_t>(1, std::clamp<int64_t>(tile_bytes / row_bytes, 24, 120) / group);
    for (int32_t s = 0; s < step.num_sequences; s++) {
        const int32_t begin = step.query_starts[s];
        const int32_t end = step.query_starts[s + 1];
        if (int64_t{end - begin} * 2 <= tokens_per_tile && step.num_sequences > 1) {
            few_.push_back(s);
            continue;
        }
        // Of about the same size: bringing keys and values to the kernel's form costs a small tile as much as a large one.
        const int64_t num_tokens = end - begin;
        const int64_t num_tiles = (num_tokens + tokens_per_tile - 1) / tokens_per_tile;
        for (int64_t i = 0; i < num_tiles; i++) {
            const int32_t first = begin + static_cast<int32_t>(num_tokens * i / num_tiles);
            const int32_t next = begin + static_cast<int32_t>(num_tokens * (i + 1) / num_tiles);
            members_.push_back({s, first, next - first, 0});
            add_tile(step, members_.size() - 1);
        }
    }
    add_shared_tiles(step, tokens_per_tile * group);
    cut_spans(num_threads);
}

/// Sequences of few tokens: neighbours in the order of their block tables have the longest prefixes in common.
void AttentionPlan::add_shared_tiles(const StepLayout& step, int64_t most_rows) {
    const auto common_blocks = [&](int32_t a, int32_t b) {
        return common_length(table_of(step, a), table_of(step, b), std::min(blocks_of(step, cut_, a), blocks_of(step, cut_, b)));
    };
    std::sort(few_.begin(), few_.end(), [&](int32_t a, int32_t b) {
        const int64_t common = common_blocks(a, b);
        const bool a_ends = common == blocks_of(step, cut_, a);
        const bool b_ends = common == blocks_of(step, cut_, b);
        if (a_ends || b_ends) return a_ends && b_ends ? a < b : a_ends;
        return table_of(step, a)[common] < table_of(step, b)[common];
    });
    int64_t rows = 0;
    size_t first = members_.size();
    for (size_t i = 0; i < few_.size(); i++) {
        const int32_t s = few_[i];
        const int32_t num_tokens = step.query_starts[s + 1] - step.query_starts[s];
        int64_t common = i == 0 ? 0 : common_blocks(few_[i - 1], s) * cut_.block_size / attention_chunk;
        if (common == 0 || rows + num_tokens * cut_.group() > most_rows) {
            if (members_.size() > first) add_tile(step, first);
            first = members_.size();
            rows = common = 0;
        }
        rows += num_tokens * cut_.group();
        members_.push_back({s, step.query_starts[s], num_tokens, static_cast<int32_t>(common)});
    }
    if (members_.size() > first) add_tile(step, first);
}

/// A tile of the members from `first` to the last.
void AttentionPlan::add_tile(const StepLayout& step, size_t first) {
    Tile tile{static_cast<int32_t>(first), static_cast<int32_t>(members_.size() - first), 0, INT32_MAX, 0, 1, -1, 0};
    for (size_t i = first; i < members_.size(); i++) {
        const Member& member = members_[i];
        const int32_t num_queries = step.query_starts[member.sequence + 1] - step.query_starts[member.sequence];
        const int64_t position = step.context_lengths[member.sequence] - num_queries + member.first_token -
                                 step.query_starts[member.sequence];
        const int64_t oldest = cut_.oldest(position);
        int64_t end = std::min<int64_t>(position + member.num_tokens + cut_.look_ahead, step.context_lengths[member.sequence]);
        if (step.last_seen != nullptr && !cut_.is_causal) {
            const int32_t* seen = step.last_seen + member.first_token;
            end = std::max<int64_t>(end, *std::max_element(seen, seen + member.num_tokens) + 1);
        }
        tile.num_rows += static_cast<int32_t>(member.num_tokens * cut_.group());
        tile.first_segment = std::min(tile.first_segment, static_cast<int32_t>(oldest / attention_segment));
        tile.end_segment = std::max(tile.end_segment, static_cast<int32_t>((end + attention_segment - 1) / attention_segment));
        cost_ += (end - oldest) * member.num_tokens * cut_.group();
    }
    tiles_.push_back(tile);
}

void AttentionPlan::cut_spans(int num_threads) {
    // Cost of one segment of one tile and head. Reading it costs about as much as a few rows.
    const auto segment_cost = [](const Tile& tile) { return (tile.num_rows + 8) * attention_segment; };
    const int32_t num_heads = static_cast<int32_t>(cut_.num_kv_heads);
    int64_t total = 0;
    for (const Tile& tile : tiles_) total += segment_cost(tile) * (tile.end_segment - tile.first_segment) * num_heads;
    const int64_t most = std::max<int64_t>(1, total / (units_per_thread * num_threads));
    for (size_t i = 0; i < tiles_.size(); i++) {
        Tile& tile = tiles_[i];
        const int64_t num_segments = tile.end_segment - tile.first_segment;
        const auto spans_wanted = [&](int64_t heads) {
            return num_threads == 1 ? 1 : (segment_cost(tile) * num_segments * heads + most - 1) / most;
        };
        const bool all_heads = tile.num_rows <= most_rows_of_all_heads && spans_wanted(num_heads) <= num_segments;
        const int32_t heads = all_heads ? num_heads : 1;
        most_rows_ = std::max<int64_t>(most_rows_, int64_t{tile.num_rows} * heads);
        tile.num_spans = static_cast<int32_t>(std::clamp<int64_t>(spans_wanted(heads), 1, num_segments));
        if (tile.num_spans > 1) {
            tile.split = static_cast<int32_t>(num_splits_++);
            tile.first_partial = num_partials_;
            num_partials_ += num_segments * tile.num_rows;
        }
        for (int64_t span = 0; span < tile.num_spans; span++) {
            const int32_t begin = static_cast<int32_t>(tile.first_segment + span * num_segments / tile.num_spans);
            const int32_t end = static_cast<int32_t>(tile.first_segment + (span + 1) * num_segments / tile.num_spans);
            for (int32_t head = 0; head < num_heads; head += heads) {
                units_.push_back({static_cast<int32_t>(i), begin, end, head, head + heads, segment_cost(tile) * (end - begin) * heads});
            }
        }
    }
    // Ties in the order of making, without the memory that a stable sort would take.
    std::sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) {
        return std::tie(b.cost, a.tile, a.first_segment, a.first_head) < std::tie(a.cost, b.tile, b.first_segment, b.first_head);
    });
}

}  // namespace octavo
