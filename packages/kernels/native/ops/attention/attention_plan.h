#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../kernels.h"

namespace octavo {

/// Which tokens belong to which sequence and where its context lies; see StepPlan in backend.ts.
struct StepLayout {
    int64_t num_tokens;
    int64_t num_sequences;
    const int32_t* slots;
    const int32_t* query_starts;
    const int32_t* context_lengths;
    const int32_t* block_tables;
    const int32_t* block_table_starts;
    /// Context position of the last token that each token sees, where that is not itself; null: all see up to themselves.
    const int32_t* last_seen = nullptr;
};

/// What of an attention op decides how its work is cut.
struct AttentionCut {
    int64_t num_heads;
    int64_t num_kv_heads;
    int64_t head_dim;
    int64_t window;  // 0 means the whole context
    int64_t block_size;
    int64_t look_ahead;
    int64_t chunk;  // 0 means none
    bool is_causal;

    bool operator==(const AttentionCut& other) const {
        return num_heads == other.num_heads && num_kv_heads == other.num_kv_heads && head_dim == other.head_dim &&
               window == other.window && block_size == other.block_size && look_ahead == other.look_ahead && chunk == other.chunk &&
               is_causal == other.is_causal;
    }
    int64_t group() const { return num_heads / num_kv_heads; }
    /// First position that a token sees.
    int64_t oldest(int64_t position) const {
        if (chunk > 0) return position - position % chunk;
        return window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
    }
};

/// How one step's attention is cut into work for threads. Consecutive tokens of a sequence form a member, members that
/// attend together form a tile; a tile of several shares each block that its members have in common (as cascade attention
/// does, Ye et al. 2024). A tile's context is taken whole by one thread or, to spread few tiles over the threads, in spans of
/// segments whose results are folded in order afterwards: the bits are the same. Where there are few rows, one
/// unit takes all kv heads, which lie side by side in a block: memory is then read in long runs.
class AttentionPlan {
public:
    struct Member {
        int32_t sequence;
        int32_t first_token;
        int32_t num_tokens;
        /// Leading chunks of context in the blocks that the member before has too; 0 for the first of a tile.
        int32_t common_chunks;
    };
    struct Tile {
        int32_t first_member;
        int32_t num_members;
        int32_t num_rows;  // tokens * group
        int32_t first_segment;
        int32_t end_segment;
        int32_t num_spans;
        /// Only for a tile in several spans: its number among those, and where its partial results start, in rows.
        int32_t split;
        int64_t first_partial;
    };
    struct Unit {
        int32_t tile;
        int32_t first_segment;
        int32_t end_segment;
        int32_t first_head;
        int32_t end_head;
        int64_t cost;
    };

    /// Keeps the memory of what it held before.
    void build(const StepLayout& step, const AttentionCut& cut, int num_threads);

    const AttentionCut& cut() const { return cut_; }
    const std::vector<Member>& members() const { return members_; }
    const std::vector<Tile>& tiles() const { return tiles_; }
    /// Costliest first.
    const std::vector<Unit>& units() const { return units_; }
    /// Rows, of all its heads, that a unit has at most.
    int64_t most_rows() const { return most_rows_; }
    int64_t num_splits() const { return num_splits_; }
    /// Rows of partial results that the split tiles need for one kv head.
    int64_t num_partials() const { return num_partials_; }
    /// Scores to be computed, for one kv head.
    int64_t cost() const { return cost_; }

private:
    void add_tile(const StepLayout& step, size_t first_member);
    void add_shared_tiles(const StepLayout& step, int64_t most_rows);
    void cut_spans(int num_threads);

    AttentionCut cut_{};
    std::vector<Member> members_;
    std::vector<Tile> tiles_;
    std::vector<Unit> units_;
    std::vector<int32_t> few_;
    int64_t most_rows_ = 0;
    int64_t num_splits_ = 0;
    int64_t num_partials_ = 0;
    int64_t cost_ = 0;
};

}  // namespace octavo
