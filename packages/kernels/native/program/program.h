#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../core/aligned_memory.h"
#include "../ops/rope_table.h"
#include "ops.h"
#include "rank_group.h"

namespace octavo {

struct OutputHead {
    std::shared_ptr<const Matrix> weight;  // null where a program gives hidden rows alone, or a rank has none of it
    std::shared_ptr<const Vector> bias;  // may be null
    float scale;
    float soft_cap;  // 0 means none
    /// Of all ranks together; 0 where this one has the whole head.
    int64_t all_rows = 0;
};

/// A compiled model: ops over activation buffers of `max_tokens` rows, whose pages are committed as steps first use them.
class Program {
public:
    Program(const std::vector<int64_t>& widths, std::vector<Op> ops, std::vector<RopeSpec> ropes, BufferSpan hidden,
            OutputHead head, int64_t max_tokens, Rank rank = {});

    Rows rows(const BufferSpan& span) const;

    const std::vector<Op>& ops() const { return ops_; }
    std::vector<RopeTable>& ropes() { return ropes_; }
    const BufferSpan& hidden() const { return hidden_; }
    const OutputHead& head() const { return head_; }
    int64_t max_tokens() const { return max_tokens_; }
    /// Which of the ranks that run the model together this program is for.
    Rank& rank() { return rank_; }

private:
    struct Buffer {
        AlignedMemory memory;
        int64_t stride;
    };
    std::vector<Buffer> buffers_;
    std::vector<Op> ops_;
    std::vector<RopeTable> ropes_;
    BufferSpan hidden_;
    OutputHead head_;
    int64_t max_tokens_;
    Rank rank_;
};

}  // namespace octavo
