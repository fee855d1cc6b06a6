#pragma once
#include "../row_kernels.h"

// Writing keys and values into the cache; layout as in AttentionContext.
namespace octavo {
namespace {

constexpr int64_t most_head_dim = 1024;

struct F32Store {
    using Type = float;
    static void put(float* to, Vec values) { store(to, values); }
};
struct F16Store {
    using Type = uint16_t;
    static void put(uint16_t* to, Vec values) { store_f16(to, values); }
};
struct Bf16Store {
    using Type = uint16_t;
    static void put(uint16_t* to, Vec values) { store_bf16(to, values); }
};

/// `to` has room for whole vectors.
template <typename Store>
inline void narrow_row(const float* from, int64_t dim, typename Store::Type* to) {
    for (int64_t i = 0; i < dim; i += Vec::width) Store::put(to + i, load_up_to(from + i, dim - i));
}

/// Symmetric int8: value = scale * byte, scale = largest magnitude / 127. A row that is not finite gets a scale that is NaN,
/// so that it stays as visible as in other caches.
inline float quantise_row(const float* from, int64_t dim, int8_t* to) {
    Vec most = zero();
    Vec poison = zero();
    for (int64_t i = 0; i < dim; i += Vec::width) {
        const Vec x = load_up_to(from + i, dim - i);
        most = maximum(most, maximum(x, zero() - x));
        poison = poison + x * zero();
    }
    const float magnitude = largest(most);
    const float scale = magnitude / 127.0f + sum(poison);
    const float inverse = magnitude > 0.0f ? 127.0f / magnitude : 0.0f;
    // 127 / magnitude is infinite for a subnormal row, which is as good as zero.
    const Vec factor = splat(inverse < __builtin_inff() ? inverse : 0.0f);
    for (int64_t i = 0; i < dim; i += Vec::width) {
        const Vec scaled = load_up_to(from + i, dim - i) * factor;
        store_i8(to + i, round_to_even(minimum(maximum(scaled, splat(-127.0f)), splat(127.0f))));
    }
    return scale;
}

template <typename Type>
inline void place(const KvRun& run, int64_t offset, const Type* key, const Type* value) {
    Type* values = reinterpret_cast<Type*>(run.to_v) + offset * run.head_dim;
    if (run.to_k != nullptr) {
        Type* keys = reinterpret_cast<Type*>(run.to_k) + offset;
        for (int64_t d = 0; d < run.head_dim; d++) keys[d * run.block_size] = key[d];
    }
    __builtin_memcpy(values, value, static_cast<size_t>(run.head_dim) * sizeof(Type));
}

template <typename Store>
void store_run(const KvRun& run) {
    alignas(64) typename Store::Type key[most_head_dim + Vec::width];
    alignas(64) typename Store::Type value[most_head_dim + Vec::width];
    for (int64_t t = 0; t < run.count; t++) {
        narrow_row<Store>(run.k + t * run.k_stride, run.head_dim, key);
        narrow_row<Store>(run.v + t * run.v_stride, run.head_dim, value);
        place(run, run.offset + t, key, value);
    }
}

void store_quantised_run(const KvRun& run) {
    alignas(64) int8_t key[most_head_dim + Vec::width];
    alignas(64) int8_t value[most_head_dim + Vec::width];
    const int64_t behind = run.block_size * run.head_dim;
    for (int64_t t = 0; t < run.count; t++) {
        const int64_t offset = run.offset + t;
        const float scales[] = {quantise_row(run.k + t * run.k_stride, run.head_dim, key),
                                quantise_row(run.v + t * run.v_stride, run.head_dim, value)};
        if (run.to_k != nullptr) __builtin_memcpy(run.to_k + behind + offset * 4, &scales[0], sizeof(float));
        __builtin_memcpy(run.to_v + behind + offset * 4, &scales[1], sizeof(float));
        place(run, offset, key, value);
    }
}

void store_kv(KvDtype dtype, const KvRun& run) {
    switch (dtype) {
        case KvDtype::f32:
            return store_run<F32Store>(run);
        case KvDtype::f16:
            return store_run<F16Store>(run);
        case KvDtype::bf16:
            return store_run<Bf16Store>(run);
        case KvDtype::int8:
            return store_quantised_run(run);
    }
}

}  // namespace
}  // namespace octavo
