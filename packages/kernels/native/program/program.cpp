#include "program.h"

#include <utility>

#include "fusion.h"

namespace octavo {

namespace {

/// Rows start on cache lines; a multiple of 4 KB would put all rows of a column into the same cache set.
int64_t stride_of(int64_t width) {
    const int64_t padded = (width + 15) / 16 * 16;
    return padded % 1024 == 0 ? padded + 16 : padded;
}

}  // namespace

Program::Program(const std::vector<int64_t>& widths, std::vector<Op> ops, std::vector<RopeSpec> ropes, BufferSpan hidden,
                 OutputHead head, int64_t max_tokens, Rank rank)
    : ops_(std::move(ops)), hidden_(hidden), head_(std::move(head)), max_tokens_(max_tokens), rank_(std::move(rank)) {
    for (const int64_t width : widths) {
        const int64_t stride = stride_of(width);
        buffers_.push_back({AlignedMemory(static_cast<size_t>(stride * max_tokens) * sizeof(float)), stride});
    }
    fuse(ops_, hidden_);
    for (RopeSpec& spec : ropes) ropes_.emplace_back(std::move(spec));
}

Rows Program::rows(const BufferSpan& span) const {
    const Buffer& buffer = buffers_[static_cast<size_t>(span.buffer)];
    return {reinterpret_cast<float*>(buffer.memory.data()) + span.column, buffer.stride};
}

}  // namespace octavo
