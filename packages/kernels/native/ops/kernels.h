#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

enum class RopeLayout { neox, interleaved };
enum class Activation { silu, gelu, gelu_tanh };
enum class KvDtype { f32, f16, bf16 };

inline size_t kv_element_bytes(KvDtype dtype) { return dtype == KvDtype::f32 ? 4 : 2; }

/// Context positions per step of the online softmax. Borders are multiples of it, whatever the block size.
constexpr int64_t attention_chunk = 64;

/// Values summed in f32 before their sum is added in double.
constexpr int64_t logit_run = 256;

/// Query tokens of one sequence against one kv head.
///
/// Cache layout of one layer, in elements: K `[block][kv_head][head_dim][block_size]`, so that scores of neighbouring
/// positions are neighbouring lanes; V `[block][kv_head][block_size][head_dim]`. `k` and `v` point at this kv head in block 0.
struct AttentionTile {
    const float* q;  // first token's first head of the group
    float* out;      // likewise
    int64_t q_stride;
    int64_t out_stride;
    int64_t num_tokens;
    int64_t group;  // query heads per kv head, adjacent in a row
    int64_t head_dim;
    int64_t first_position;  // context index of the first token; the others follow
    const void* k;
    const void* v;
    int64_t block_stride;  // elements from a block to the next
    const int32_t* block_table;
    int64_t block_size;
    float scale;
    float soft_cap;  // 0 means none
    int64_t window;  // 0 means the whole context
    float* scratch;  // attention_scratch_floats(...), 64-byte aligned
};

/// What the kernels need in `scratch` for a tile of `rows` = num_tokens * group.
inline size_t attention_scratch_floats(int64_t rows, int64_t head_dim) {
    const int64_t padded_dim = (head_dim + 15) / 16 * 16;
    return static_cast<size_t>(rows * (head_dim + padded_dim + attention_chunk + 16) +
                               attention_chunk * (head_dim + padded_dim));
}

/// Row and vector primitives of one instruction set. A result depends on the arguments alone.
struct OpKernels {
    /// residual += in (when given), then out = norm(residual or in) * (weight + weight_offset), each `group` columns on their own.
    void (*rms_norm)(const float* in, const float* weight, float weight_offset, float eps, int64_t width, int64_t group,
                     float* residual, float* out);
    /// Rotates the first 2 * pairs columns of every head; cos and sin hold one value per pair.
    void (*rope)(float* on, int64_t num_heads, int64_t head_dim, const float* cos, const float* sin, int64_t pairs,
                 RopeLayout layout);
    /// out = activation(gate) * up
    void (*gated_activation)(Activation activation, const float* gate, const float* up, float* out, int64_t width);
    /// out += in
    void (*add)(const float* in, float* out, int64_t width);
    void (*scale)(float* on, float factor, int64_t width);
    /// x = cap * tanh(x / cap)
    void (*soft_cap)(float* on, float cap, int64_t width);
    void (*attend)(KvDtype dtype, const AttentionTile& tile);

    /// Largest value; `bad` is set when one is NaN or +infinity.
    float (*largest)(const float* x, int64_t count, bool* bad);
    /// Sum of e^(x - shift): f32 within runs of `logit_run`, double across them.
    double (*sum_exponentials)(const float* x, int64_t count, float shift);
    /// out = e^((x - shift) * inverse_temperature), 0 below `floor`; returns the sum as sum_exponentials does, and the
    /// sum of every run of `logit_run` values in `run_sums`.
    double (*weigh)(const float* x, int64_t count, float shift, float inverse_temperature, float floor, float* out,
                    double* run_sums);
    int64_t (*count_greater)(const float* x, int64_t count, float threshold);
    /// Smallest index at or after `begin` whose value is above `threshold`, or `count`.
    int64_t (*find_greater)(const float* x, int64_t begin, int64_t count, float threshold);
    /// Smallest index whose value is `value`, or `count`.
    int64_t (*find)(const float* x, int64_t count, float value);
    /// Writes indices whose value is at least `threshold` (> 0), ascending, and their values; returns how many.
    int64_t (*collect)(const float* x, int64_t count, float threshold, int32_t* indices, float* values);
};

/// The table of the active instruction set.
const OpKernels& op_kernels();

}  // namespace octavo
