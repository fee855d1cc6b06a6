#include "attention.h"

#include <algorithm>

#include "float_to_f16.h"

namespace octavo {

namespace {

/// Rows of a tile: enough that bringing a chunk of keys and values to f32 costs little beside using it.
constexpr int64_t rows_per_tile = 48;
constexpr int64_t tokens_per_store = 64;
/// Products of query and key elements below which waking the pool costs more than it gives.
constexpr int64_t worth_sharing = 200000;

template <typename T>
T* at(const AlignedMemory& memory, int64_t element) {
    return reinterpret_cast<T*>(memory.data()) + element;
}

template <typename T, typename Convert>
void store_tokens(const KvShape& shape, const KvLayer& layer, const int32_t* slots, Rows k, Rows v, int64_t head,
                  int64_t begin, int64_t end, Convert&& convert) {
    for (int64_t t = begin; t < end; t++) {
        const int64_t block = slots[t] / shape.block_size;
        const int64_t offset = slots[t] % shape.block_size;
        const int64_t base = block * shape.block_elements() + head * shape.head_elements();
        T* keys = at<T>(layer.k, base + offset);
        T* values = at<T>(layer.v, base + offset * shape.head_dim);
        const float* from_k = k.row(t) + head * shape.head_dim;
        const float* from_v = v.row(t) + head * shape.head_dim;
        for (int64_t d = 0; d < shape.head_dim; d++) keys[d * shape.block_size] = convert(from_k[d]);
        for (int64_t d = 0; d < shape.head_dim; d++) values[d] = convert(from_v[d]);
    }
}

void store_head(const KvShape& shape, const KvLayer& layer, const int32_t* slots, Rows k, Rows v, int64_t head,
                int64_t begin, int64_t end) {
    switch (shape.dtype) {
        case KvDtype::f32:
            return store_tokens<float>(shape, layer, slots, k, v, head, begin, end, [](float x) { return x; });
        case KvDtype::f16:
            return store_tokens<uint16_t>(shape, layer, slots, k, v, head, begin, end, f32_to_f16);
        case KvDtype::bf16:
            return store_tokens<uint16_t>(shape, layer, slots, k, v, head, begin, end,
                                          [](float x) { return f32_to_bf16(x); });
    }
}

}  // namespace

Attention::Attention(ThreadPool& pool) : pool_(pool), scratch_(static_cast<size_t>(pool.size())) {}

void Attention::store(const KvShape& shape, const KvLayer& layer, const StepLayout& step, Rows k, Rows v) {
    const int64_t runs = (step.num_tokens + tokens_per_store - 1) / tokens_per_store;
    const auto store_units = [&](int64_t first, int64_t last, int) {
        for (int64_t unit = first; unit < last; unit++) {
            const int64_t begin = unit / shape.num_kv_heads * tokens_per_store;
            const int64_t end = std::min(begin + tokens_per_store, step.num_tokens);
            store_head(shape, layer, step.slots, k, v, unit % shape.num_kv_heads, begin, end);
        }
    };
    if (step.num_tokens * shape.num_kv_heads * shape.head_dim < 8192) {
        store_units(0, runs * shape.num_kv_heads, 0);
    } else {
        pool_.parallel_for(runs * shape.num_kv_heads, 1, store_units);
    }
}

void Attention::cut_tiles(const StepLayout& step, int64_t tokens_per_tile) {
    tiles_.clear();
    for (int64_t s = 0; s < step.num_sequences; s++) {
        const int64_t end = step.query_starts[s + 1];
        for (int64_t t = step.query_starts[s]; t < end; t += tokens_per_tile) {
            tiles_.push_back({static_cast<int32_t>(s), static_cast<int32_t>(t),
                              static_cast<int32_t>(std::min(tokens_per_tile, end - t))});
        }
    }
}

void Attention::attend(const AttentionSpec& spec, const KvShape& shape, const KvLayer& layer, const StepLayout& step,
                       Rows q, Rows out) {
    const OpKernels& kernels = op_kernels();
    const int64_t group = spec.num_heads / spec.num_kv_heads;
    const int64_t tokens_per_tile = std::max<int64_t>(1, rows_per_tile / group);
    cut_tiles(step, tokens_per_tile);
    const size_t scratch_bytes = sizeof(float) * attention_scratch_floats(tokens_per_tile * group, spec.head_dim);
    for (AlignedMemory& scratch : scratch_) {
        if (scratch.size() < scratch_bytes) scratch = AlignedMemory(scratch_bytes);
    }
    const int64_t num_tiles = static_cast<int64_t>(tiles_.size());
    const size_t element_bytes = kv_element_bytes(shape.dtype);

    const auto attend_units = [&](int64_t first, int64_t last, int thread) {
        for (int64_t unit = first; unit < last; unit++) {
            // The last tiles of a prompt see the longest context: they go first, so that threads finish together.
            const Tile& tile = tiles_[static_cast<size_t>(num_tiles - 1 - unit / spec.num_kv_heads)];
            const int64_t head = unit % spec.num_kv_heads;
            const int64_t start = step.query_starts[tile.sequence];
            const int64_t num_queries = step.query_starts[tile.sequence + 1] - start;
            const size_t head_bytes = static_cast<size_t>(head * shape.head_elements()) * element_bytes;
            AttentionTile work;
            work.q = q.row(tile.first_token) + head * group * spec.head_dim;
            work.out = out.row(tile.first_token) + head * group * spec.head_dim;
            work.q_stride = q.stride;
            work.out_stride = out.stride;
            work.num_tokens = tile.num_tokens;
            work.group = group;
            work.head_dim = spec.head_dim;
            work.first_position = step.context_lengths[tile.sequence] - num_queries + (tile.first_token - start);
            work.k = layer.k.data() + head_bytes;
            work.v = layer.v.data() + head_bytes;
            work.block_stride = shape.block_elements();
            work.block_table = step.block_tables + step.block_table_starts[tile.sequence];
            work.block_size = shape.block_size;
            work.scale = spec.scale;
            work.soft_cap = spec.soft_cap;
            work.window = spec.window;
            work.scratch = reinterpret_cast<float*>(scratch_[static_cast<size_t>(thread)].data());
            kernels.attend(shape.dtype, work);
        }
    };
    int64_t products = 0;
    for (int64_t s = 0; s < step.num_sequences; s++) {
        products += int64_t{step.query_starts[s + 1] - step.query_starts[s]} * step.context_lengths[s];
    }
    const int64_t num_units = num_tiles * spec.num_kv_heads;
    if (products * spec.num_heads * spec.head_dim < worth_sharing) {
        attend_units(0, num_units, 0);
    } else {
        pool_.parallel_for(num_units, 1, attend_units);
    }
}

}  // namespace octavo
