#include "state_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../kernels.h"

namespace octavo {

namespace {

/// Channels that a thread takes at a time.
constexpr int64_t channels_at_once = 256;

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

void copy(const float* from, int64_t count, float* to) { std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float)); }

/// Runs fn(unit, thread) for each unit, on the pool when there is work enough to pay for waking it.
template <typename F>
void for_units(ThreadPool& pool, int64_t units, int64_t work, F&& fn) {
    constexpr int64_t worth_sharing = 16384;
    if (units == 1 || pool.size() == 1 || work < worth_sharing) {
        for (int64_t unit = 0; unit < units; unit++) fn(unit, 0);
        return;
    }
    const int64_t grain = std::max<int64_t>(1, units / (4 * pool.size()));
    pool.parallel_for(units, grain, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t unit = begin; unit < end; unit++) fn(unit, thread);
    });
}

}  // namespace

/// Inputs of the recurrence, row by row; those of the delta rule are normalised copies.
struct StateRunner::Prepared {
    Rows q;
    Rows k;
    Rows v;
    Rows out;
    float* gates;  // [row][head][2]
    int64_t gate_stride;
};

void StateRunner::begin(const StepLayout& step, const StateLayout& layout, const StateCache& cache) {
    cache_ = &cache;
    num_rows_ = step.num_tokens;
    num_sequences_ = static_cast<size_t>(layout.slots.empty() ? 0 : step.num_sequences);
    if (sequences_.size() < num_sequences_) sequences_.resize(num_sequences_);
    for (size_t i = 0; i < num_sequences_; i++) {
        Sequence& sequence = sequences_[i];
        sequence.first_row = step.query_starts[i];
        sequence.context = step.context_lengths[i];
        sequence.first = sequence.context - (step.query_starts[i + 1] - step.query_starts[i]);
        sequence.start = layout.starts[i];
        sequence.end = layout.ends[i];
        sequence.slot = layout.slots[i];
        sequence.source = layout.sources[i];
        sequence.snapshots.clear();
        for (int32_t at = layout.snapshot_starts[i]; at < layout.snapshot_starts[i + 1]; at++) {
            sequence.snapshots.push_back({layout.snapshot_positions[static_cast<size_t>(at)], layout.snapshot_slots[static_cast<size_t>(at)]});
        }
    }
    const size_t threads = static_cast<size_t>(pool_.size());
    scratch_.resize(threads);
    inputs_.resize(threads);
}

void StateRunner::convolve(const ConvolutionSpec& spec, Rows in, Rows out) {
    const int64_t blocks = (spec.width + channels_at_once - 1) / channels_at_once;
    if (zeros_.size() < static_cast<size_t>(spec.width)) zeros_.resize(static_cast<size_t>(spec.width), 0.0f);
    const int64_t units = static_cast<int64_t>(num_sequences_) * blocks;
    for_units(pool_, units, num_rows_ * spec.width / 2, [&](int64_t unit, int thread) {
        const int64_t channel = unit % blocks * channels_at_once;
        convolve_channels(spec, sequences_[static_cast<size_t>(unit / blocks)], in, out, channel,
                          std::min(channels_at_once, spec.width - channel), inputs_[static_cast<size_t>(thread)]);
    });
}

void StateRunner::convolve_channels(const ConvolutionSpec& spec, const Sequence& sequence, Rows in, Rows out, int64_t channel,
                                    int64_t count, std::vector<const float*>& inputs) const {
    const int64_t before = spec.taps - 1;
    const int64_t kept = before + cache_->max_draft();
    const auto kept_at = [&](int64_t slot, int64_t position) {
        return cache_->slot(spec.state, slot) + position % kept * spec.width + channel;
    };
    const auto input = [&](int64_t position) -> const float* {
        if (position < 0) return zeros_.data() + channel;
        if (position < sequence.first) return kept_at(sequence.source, position);
        return in.row(sequence.first_row + position - sequence.first) + channel;
    };
    inputs.clear();
    for (int64_t position = sequence.first - before; position < sequence.context; position++) inputs.push_back(input(position));
    recurrent_kernels().convolve(inputs.data(), sequence.context - sequence.first, spec.taps, spec.weight + channel, spec.width,
                                 spec.bias == nullptr ? nullptr : spec.bias + channel, spec.silu, count,
                                 out.row(sequence.first_row) + channel, out.stride);
    for (const Snapshot& snapshot : sequence.snapshots) {
        for (int64_t position = std::max<int64_t>(0, snapshot.position - before); position < snapshot.position; position++) {
            copy(input(position), count, kept_at(snapshot.slot, position));
        }
    }
    for (int64_t position = std::max<int64_t>(0, sequence.end - before); position < sequence.context; position++) {
        const bool is_there = position < sequence.first && sequence.source == sequence.slot;
        if (!is_there) copy(input(position), count, kept_at(sequence.slot, position));
    }
}

void StateRunner::recur(const RecurrenceSpec& spec, const RecurrenceRows& rows) {
    const int64_t gate_stride = 2 * spec.num_heads;
    const int64_t key_stride = spec.is_delta ? spec.key_width() : 0;
    const size_t floats = static_cast<size_t>(num_rows_ * (gate_stride + 2 * key_stride));
    if (prepared_.size() < floats * sizeof(float)) prepared_ = AlignedMemory(floats * sizeof(float));
    float* memory = reinterpret_cast<float*>(prepared_.data());
    Prepared prepared{rows.q, rows.k, rows.v, rows.out, memory + 2 * num_rows_ * key_stride, gate_stride};
    if (spec.is_delta) {
        prepared.q = {memory, key_stride};
        prepared.k = {memory + num_rows_ * key_stride, key_stride};
    }
    prepare(spec, rows, prepared);

    const int64_t tiles = spec.num_tiles();
    const int64_t units_each = spec.num_heads * tiles;
    for (auto& scratch : scratch_) {
        if (scratch.size() < static_cast<size_t>(spec.tile_floats())) scratch.resize(static_cast<size_t>(spec.tile_floats()));
    }
    const int64_t work = num_rows_ * units_each * spec.tile_floats();
    for_units(pool_, static_cast<int64_t>(num_sequences_) * units_each, work, [&](int64_t unit, int thread) {
        const int64_t of_sequence = unit % units_each;
        recur_tile(spec, sequences_[static_cast<size_t>(unit / units_each)], prepared, of_sequence / tiles, of_sequence % tiles,
                   scratch_[static_cast<size_t>(thread)].data());
    });
    for (size_t i = 0; i < num_sequences_; i++) keep_drafts(spec, sequences_[i], prepared);
}

void StateRunner::prepare(const RecurrenceSpec& spec, const RecurrenceRows& rows, const Prepared& prepared) const {
    constexpr float eps = 1e-6f;
    const float scale = 1.0f / std::sqrt(static_cast<float>(spec.key_dim));
    for_units(pool_, num_rows_, num_rows_ * (spec.key_width() + 64 * spec.num_heads), [&](int64_t row, int) {
        for (int64_t head = 0; spec.is_delta && head < spec.num_key_heads; head++) {
            const int64_t at = head * spec.key_dim;
            recurrent_kernels().normalise(rows.q.row(row) + at, spec.key_dim, eps, scale, prepared.q.row(row) + at);
            recurrent_kernels().normalise(rows.k.row(row) + at, spec.key_dim, eps, 1.0f, prepared.k.row(row) + at);
        }
        float* gates = prepared.gates + row * prepared.gate_stride;
        for (int64_t head = 0; head < spec.num_heads; head++) {
            float step = softplus(rows.decay.row(row)[head] + spec.biases[head]);
            if (!spec.is_delta) step = std::min(spec.most_step, std::max(spec.least_step, step));
            gates[2 * head] = std::exp(-spec.rates[head] * step);
            gates[2 * head + 1] = spec.is_delta ? 1.0f / (1.0f + std::exp(-rows.strength.row(row)[head])) : step;
        }
    });
}

void StateRunner::recur_tile(const RecurrenceSpec& spec, const Sequence& sequence, const Prepared& prepared, int64_t head,
                             int64_t tile, float* scratch) const {
    const RecurrentKernels& kernels = recurrent_kernels();
    const auto run = spec.is_delta ? kernels.delta_rule : kernels.accumulate;
    const int64_t floats = spec.tile_floats();
    const int64_t offset = (head * spec.num_tiles() + tile) * floats;
    const int64_t columns = std::min(state_tile, spec.value_dim - tile * state_tile);
    const int64_t key_at = spec.key_head(head) * spec.key_dim;
    const int64_t value_at = head * spec.value_dim + tile * state_tile;
    float* slot = cache_->slot(spec.state, sequence.slot);
    // What is computed behind `end` must not reach the slot.
    float* state = sequence.end < sequence.context ? scratch : slot + offset;
    if (sequence.source < 0) {
        std::fill(state, state + floats, 0.0f);
    } else {
        const float* source = cache_->slot(spec.state, sequence.source) + offset;
        if (source != state) copy(source, floats, state);
    }
    const auto advance = [&](int64_t from, int64_t to) {
        // Accepted draft tokens of the step before.
        for (; from < std::min(to, sequence.first); from++) {
            const int64_t entry = spec.key_width() + spec.value_width() + 2 * spec.num_heads;
            const float* kept = slot + spec.num_heads * spec.num_tiles() * floats + from % cache_->max_draft() * entry;
            const float* k = kept + key_at;
            const float* gates = kept + spec.key_width() + spec.value_width() + 2 * head;
            run(state, spec.key_dim, {1, k, k, 0, 0, kept + spec.key_width() + value_at, 0, gates, 0, nullptr, 0, columns});
        }
        if (from >= to) return;
        const int64_t row = sequence.first_row + from - sequence.first;
        run(state, spec.key_dim,
            {to - from, prepared.q.row(row) + key_at, prepared.k.row(row) + key_at, prepared.q.stride, prepared.k.stride,
             prepared.v.row(row) + value_at, prepared.v.stride, prepared.gates + row * prepared.gate_stride + 2 * head,
             prepared.gate_stride, prepared.out.row(row) + value_at, prepared.out.stride, columns});
    };
    int64_t position = sequence.start;
    for (const Snapshot& snapshot : sequence.snapshots) {
        advance(position, snapshot.position);
        position = snapshot.position;
        copy(state, floats, cache_->slot(spec.state, snapshot.slot) + offset);
    }
    advance(position, sequence.end);
    if (state != slot + offset) copy(state, floats, slot + offset);
    advance(sequence.end, sequence.context);
    if (spec.skips == nullptr) return;
    for (int64_t i = sequence.first; i < sequence.context; i++) {
        const int64_t row = sequence.first_row + i - sequence.first;
        op_kernels().add_scaled(prepared.v.row(row) + value_at, spec.skips[head], prepared.out.row(row) + value_at, columns);
    }
}

void StateRunner::keep_drafts(const RecurrenceSpec& spec, const Sequence& sequence, const Prepared& prepared) const {
    float* kept = cache_->slot(spec.state, sequence.slot) + spec.num_heads * spec.num_tiles() * spec.tile_floats();
    const int64_t entry = spec.key_width() + spec.value_width() + 2 * spec.num_heads;
    for (int64_t position = sequence.end; position < sequence.context; position++) {
        const int64_t row = sequence.first_row + position - sequence.first;
        float* to = kept + position % cache_->max_draft() * entry;
        copy(prepared.k.row(row), spec.key_width(), to);
        copy(prepared.v.row(row), spec.value_width(), to + spec.key_width());
        copy(prepared.gates + row * prepared.gate_stride, 2 * spec.num_heads, to + spec.key_width() + spec.value_width());
    }
}

}  // namespace octavo
