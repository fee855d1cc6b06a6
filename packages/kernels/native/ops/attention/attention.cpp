#include "attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace octavo {

namespace {

constexpr int64_t tokens_per_store = 64;
/// Scores of a row over a chunk.
constexpr int64_t score_bytes = attention_chunk * static_cast<int64_t>(sizeof(float));
/// Products of query and key elements below which waking the pool costs more than it gives.
constexpr int64_t worth_sharing = 200000;
constexpr AttentionState unseen{-std::numeric_limits<float>::infinity(), 0.0f, 0, 0};

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

void reserve(AlignedMemory& memory, int64_t bytes) {
    if (memory.size() < static_cast<size_t>(bytes)) memory = AlignedMemory(static_cast<size_t>(bytes));
}

}  // namespace

/// A thread's view of its memory, for the rows of a unit: those of its first head, then those of the next.
struct Attention::Scratch {
    float* queries;
    float* accumulated;  // of the segment at hand
    float* folded;       // of all before
    float* keys;
    float* values;
    float* scores;
    AttentionState* states;
    AttentionState* folded_states;
    int32_t* positions;
    int32_t* ends;

    static int64_t bytes(int64_t rows, int64_t head_dim) {
        const int64_t row = attention_stride(head_dim) * static_cast<int64_t>(sizeof(float));
        return 3 * rows * row + 2 * attention_chunk * row + rows * score_bytes +
               2 * aligned(rows * static_cast<int64_t>(sizeof(AttentionState))) + 2 * aligned(rows * static_cast<int64_t>(sizeof(int32_t)));
    }
};

/// One attention op.
struct Attention::Job {
    const AttentionSpec& spec;
    const KvShape& shape;
    const KvLayer& layer;
    const AttentionPlan& plan;
    Rows q;
    Rows out;
    const OpKernels& kernels;
    int64_t group;
    int64_t stride;
    float* partials;
    AttentionState* partial_states;

    const AttentionPlan::Tile& tile_of(const AttentionPlan::Unit& unit) const {
        return plan.tiles()[static_cast<size_t>(unit.tile)];
    }
    int64_t partial(const AttentionPlan::Tile& tile, int64_t head, int64_t segment) const {
        return head * plan.num_partials() + tile.first_partial + (segment - tile.first_segment) * tile.num_rows;
    }
};

Attention::Attention(ThreadPool& pool) : pool_(pool), scratch_(static_cast<size_t>(pool.size())) {}

void Attention::begin(const StepLayout& step) {
    step_ = step;
    num_plans_ = 0;
}

void Attention::store(const KvShape& shape, const KvLayer& layer, Rows k, Rows v) {
    const OpKernels& kernels = op_kernels();
    const int64_t runs = (step_.num_tokens + tokens_per_store - 1) / tokens_per_store;
    const auto store_units = [&](int64_t first, int64_t last, int) {
        for (int64_t unit = first; unit < last; unit++) {
            const int64_t head = unit % shape.num_kv_heads;
            const int64_t begin = unit / shape.num_kv_heads * tokens_per_store;
            const int64_t end = std::min(begin + tokens_per_store, step_.num_tokens);
            for (int64_t t = begin; t < end;) {
                const int64_t block = step_.slots[t] / shape.block_size;
                const int64_t offset = step_.slots[t] % shape.block_size;
                int64_t count = 1;
                while (t + count < end && offset + count < shape.block_size && step_.slots[t + count] == step_.slots[t] + count) {
                    count++;
                }
                const int64_t at = block * shape.block_bytes() + head * shape.head_bytes();
                const Rows& values = shape.is_latent ? k : v;
                kernels.store_kv(shape.dtype,
                                 {k.row(t) + head * shape.head_dim, values.row(t) + head * shape.head_dim, k.stride, values.stride,
                                  shape.is_latent ? nullptr : layer.k.data() + at, layer.v.data() + at, offset, count,
                                  shape.block_size, shape.head_dim});
                t += count;
            }
        }
    };
    if (step_.num_tokens * shape.num_kv_heads * shape.head_dim < 32768) {
        store_units(0, runs * shape.num_kv_heads, 0);
    } else {
        pool_.parallel_for(runs * shape.num_kv_heads, 1, store_units);
    }
}

const AttentionPlan& Attention::plan_for(const AttentionSpec& spec, const KvShape& shape) {
    const AttentionCut cut{spec.num_heads, spec.num_kv_heads, spec.head_dim, spec.window, shape.block_size, spec.look_ahead,
                           spec.chunk, spec.is_causal};
    for (size_t i = 0; i < num_plans_; i++) {
        if (plans_[i].cut() == cut) return plans_[i];
    }
    if (num_plans_ == plans_.size()) plans_.emplace_back();
    AttentionPlan& plan = plans_[num_plans_++];
    int64_t products = 0;
    for (int64_t s = 0; s < step_.num_sequences; s++) {
        products += int64_t{step_.query_starts[s + 1] - step_.query_starts[s]} * step_.context_lengths[s];
    }
    plan.build(step_, cut, products * spec.num_heads * spec.head_dim < worth_sharing ? 1 : pool_.size());
    return plan;
}

Attention::Scratch Attention::scratch_of(int thread, int64_t rows, int64_t head_dim) const {
    uint8_t* next = scratch_[static_cast<size_t>(thread)].data();
    const auto take = [&](int64_t bytes) {
        uint8_t* here = next;
        next += aligned(bytes);
        return here;
    };
    const int64_t row = attention_stride(head_dim) * static_cast<int64_t>(sizeof(float));
    const auto floats = [&](int64_t count) { return reinterpret_cast<float*>(take(count * row)); };
    const auto states = [&] { return reinterpret_cast<AttentionState*>(take(rows * static_cast<int64_t>(sizeof(AttentionState)))); };
    Scratch scratch{};
    scratch.queries = floats(rows);
    scratch.accumulated = floats(rows);
    scratch.folded = floats(rows);
    scratch.keys = floats(attention_chunk);
    scratch.values = floats(attention_chunk);
    scratch.scores = reinterpret_cast<float*>(take(rows * score_bytes));
    scratch.states = states();
    scratch.folded_states = states();
    const auto integers = [&] { return reinterpret_cast<int32_t*>(take(rows * static_cast<int64_t>(sizeof(int32_t)))); };
    scratch.positions = integers();
    scratch.ends = integers();
    return scratch;
}

void Attention::attend(const AttentionSpec& spec, const KvShape& shape, const KvLayer& layer, Rows q, Rows out) {
    const AttentionPlan& plan = plan_for(spec, shape);
    const int64_t stride = attention_stride(spec.head_dim);
    for (AlignedMemory& scratch : scratch_) reserve(scratch, Scratch::bytes(plan.most_rows(), spec.head_dim));
    const int64_t num_partials = plan.num_partials() * spec.num_kv_heads;
    const int64_t sum_bytes = num_partials * stride * static_cast<int64_t>(sizeof(float));
    reserve(partials_, sum_bytes + num_partials * static_cast<int64_t>(sizeof(AttentionState)));
    running_spans_.assign(static_cast<size_t>(plan.num_splits() * spec.num_kv_heads), 0);
    for (const AttentionPlan::Tile& tile : plan.tiles()) {
        if (tile.split < 0) continue;
        std::fill_n(running_spans_.begin() + tile.split * spec.num_kv_heads, spec.num_kv_heads, tile.num_spans);
    }
    const Job job{spec,
                  shape,
                  layer,
                  plan,
                  q,
                  out,
                  op_kernels(),
                  spec.num_heads / spec.num_kv_heads,
                  stride,
                  reinterpret_cast<float*>(partials_.data()),
                  reinterpret_cast<AttentionState*>(partials_.data() + sum_bytes)};
    const auto attend_units = [&](int64_t first, int64_t last, int thread) {
        const Scratch scratch = scratch_of(thread, plan.most_rows(), spec.head_dim);
        for (int64_t unit = first; unit < last; unit++) {
            attend_unit(job, plan.units()[static_cast<size_t>(unit)], scratch);
        }
    };
    const int64_t num_units = static_cast<int64_t>(plan.units().size());
    if (plan.cost() * spec.num_kv_heads * spec.head_dim < worth_sharing) {
        attend_units(0, num_units, 0);
    } else {
        pool_.parallel_for(num_units, 1, attend_units);
    }
}

void Attention::gather(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch) const {
    const AttentionPlan::Tile& tile = job.tile_of(unit);
    int64_t row = 0;
    for (int64_t head = unit.first_head; head < unit.end_head; head++) {
        for (int32_t m = tile.first_member; m < tile.first_member + tile.num_members; m++) {
            const AttentionPlan::Member& member = job.plan.members()[static_cast<size_t>(m)];
            const int32_t end = step_.query_starts[member.sequence + 1];
            const int64_t length = step_.context_lengths[member.sequence];
            for (int32_t t = member.first_token; t < member.first_token + member.num_tokens; t++) {
                const int64_t position = length - (end - t);
                const int64_t ahead = std::min(position + 1 + job.spec.look_ahead, length);
                const int64_t seen = step_.last_seen == nullptr || job.spec.is_causal ? 0 : step_.last_seen[t] + 1;
                for (int64_t g = 0; g < job.group; g++, row++) {
                    scratch.positions[row] = static_cast<int32_t>(position);
                    scratch.ends[row] = static_cast<int32_t>(std::max(ahead, seen));
                    job.kernels.pack_query(job.shape.dtype, job.q.row(t) + (head * job.group + g) * job.spec.head_dim,
                                           job.spec.head_dim, scratch.queries + row * job.stride);
                }
            }
        }
    }
}

void Attention::attend_unit(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch) {
    const AttentionPlan::Tile& tile = job.tile_of(unit);
    const int64_t num_rows = int64_t{tile.num_rows} * (unit.end_head - unit.first_head);
    const size_t sum_bytes = static_cast<size_t>(num_rows * job.stride) * sizeof(float);
    const size_t head_bytes = static_cast<size_t>(tile.num_rows * job.stride) * sizeof(float);
    gather(job, unit, scratch);
    const auto clear_folded = [&] {
        std::memset(scratch.folded, 0, sum_bytes);
        std::fill_n(scratch.folded_states, num_rows, unseen);
    };
    const auto fold_rows = [&](int64_t first, int64_t count, const float* sums, const AttentionState* states) {
        for (int64_t r = 0; r < count; r++) {
            job.kernels.fold(scratch.folded_states[first + r], scratch.folded + (first + r) * job.stride, states[r],
                             sums + r * job.stride, job.spec.head_dim);
        }
    };
    if (tile.num_spans == 1) clear_folded();
    for (int64_t segment = unit.first_segment; segment < unit.end_segment; segment++) {
        constexpr int64_t chunks = attention_segment / attention_chunk;
        std::memset(scratch.accumulated, 0, sum_bytes);
        std::fill_n(scratch.states, num_rows, unseen);
        descend(job, unit, scratch, 0, tile.num_members, segment * chunks, (segment + 1) * chunks);
        if (tile.num_spans == 1) {
            fold_rows(0, num_rows, scratch.accumulated, scratch.states);
            continue;
        }
        for (int64_t head = unit.first_head, first = 0; head < unit.end_head; head++, first += tile.num_rows) {
            const int64_t partial = job.partial(tile, head, segment);
            std::memcpy(job.partials + partial * job.stride, scratch.accumulated + first * job.stride, head_bytes);
            std::copy_n(scratch.states + first, tile.num_rows, job.partial_states + partial);
        }
    }
    if (tile.num_spans > 1) {
        // The last thread to finish folds, in the segments' order.
        int32_t& running = running_spans_[static_cast<size_t>(tile.split * job.spec.num_kv_heads + unit.first_head)];
        if (__atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL) > 0) return;
        clear_folded();
        for (int64_t head = unit.first_head, first = 0; head < unit.end_head; head++, first += tile.num_rows) {
            for (int64_t segment = tile.first_segment; segment < tile.end_segment; segment++) {
                const int64_t partial = job.partial(tile, head, segment);
                fold_rows(first, tile.num_rows, job.partials + partial * job.stride, job.partial_states + partial);
            }
        }
    }
    finish(job, unit, scratch);
}

/// Takes members [first, last) of a tile, which have everything before `chunk` in common, through chunks up to `end`.
void Attention::descend(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch, int32_t first, int32_t last,
                        int64_t chunk, int64_t end) const {
    if (chunk == end) return;
    const AttentionPlan::Tile& tile = job.tile_of(unit);
    const AttentionPlan::Member* members = job.plan.members().data() + tile.first_member;
    int64_t row = 0;
    for (int32_t m = 0; m < first; m++) row += members[m].num_tokens * job.group;
    for (int32_t m = first; m < last;) {
        AttentionRows rows{};
        int64_t common = end;
        const int32_t begin = m;
        do {
            rows.count += members[m].num_tokens * job.group;
            m++;
            if (m < last && members[m].common_chunks > chunk) common = std::min<int64_t>(common, members[m].common_chunks);
        } while (m < last && members[m].common_chunks > chunk);
        const int32_t sequence = members[begin].sequence;
        AttentionContext context{};
        context.v = job.layer.v.data() + unit.first_head * job.shape.head_bytes();
        context.is_latent = job.shape.is_latent;
        context.k = context.is_latent ? context.v : job.layer.k.data() + unit.first_head * job.shape.head_bytes();
        context.num_heads = unit.end_head - unit.first_head;
        context.head_bytes = job.shape.head_bytes();
        context.block_bytes = job.shape.block_bytes();
        context.block_table = step_.block_tables + step_.block_table_starts[sequence];
        context.block_size = job.shape.block_size;
        context.head_dim = job.spec.head_dim;
        context.length = step_.context_lengths[sequence];
        context.scale = job.spec.scale;
        context.soft_cap = job.spec.soft_cap;
        context.window = job.spec.window;
        context.chunk = job.spec.chunk;
        rows.per_head = tile.num_rows;
        rows.queries = scratch.queries + row * job.stride;
        rows.positions = scratch.positions + row;
        rows.ends = scratch.ends + row;
        rows.accumulated = scratch.accumulated + row * job.stride;
        rows.states = scratch.states + row;
        rows.keys = scratch.keys;
        rows.values = scratch.values;
        rows.scores = scratch.scores;
        job.kernels.attend(job.shape.dtype, rows, context, chunk * attention_chunk, common * attention_chunk);
        descend(job, unit, scratch, begin, m, common, end);
        row += rows.count;
    }
}

void Attention::finish(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch) const {
    const AttentionPlan::Tile& tile = job.tile_of(unit);
    const int64_t value_dim = job.spec.value_dim > 0 ? job.spec.value_dim : job.spec.head_dim;
    int64_t row = 0;
    for (int64_t head = unit.first_head; head < unit.end_head; head++) {
        for (int32_t m = tile.first_member; m < tile.first_member + tile.num_members; m++) {
            const AttentionPlan::Member& member = job.plan.members()[static_cast<size_t>(m)];
            for (int32_t t = member.first_token; t < member.first_token + member.num_tokens; t++) {
                for (int64_t g = 0; g < job.group; g++, row++) {
                    float* sums = scratch.folded + row * job.stride;
                    const AttentionState& state = scratch.folded_states[row];
                    const int64_t query_head = head * job.group + g;
                    const float sink = job.spec.sinks == nullptr ? 0.0f : std::exp(job.spec.sinks[query_head] - state.largest);
                    job.kernels.scale(sums, 1.0f / (state.total + sink), job.spec.head_dim);
                    std::memcpy(job.out.row(t) + query_head * value_dim, sums + job.spec.head_dim - value_dim,
                                static_cast<size_t>(value_dim) * sizeof(float));
                }
            }
        }
    }
}

}  // namespace octavo
