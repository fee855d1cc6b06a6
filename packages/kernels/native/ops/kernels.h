#pragma once
#include <cstddef>
#include <cstdint>

#include "../core/enumeration.h"
#include "../core/isa.h"

namespace octavo {

enum class RopeLayout { neox, interleaved };
OCTAVO_ENUMERATION(Activation, silu, gelu, gelu_tanh, clamped_swiglu, sigmoid, identity, relu_squared, tanh, relu);
OCTAVO_ENUMERATION(KvDtype, f32, f16, bf16, int8);

inline size_t kv_element_bytes(KvDtype dtype) {
    switch (dtype) {
        case KvDtype::f32:
            return 4;
        case KvDtype::int8:
            return 1;
        default:
            return 2;
    }
}

/// Context positions per step of the online softmax. Borders are multiples of it, whatever the block size.
constexpr int64_t attention_chunk = 64;
/// Positions whose softmax starts afresh; the results are then folded in ascending order. What may run on several threads.
constexpr int64_t attention_segment = 4 * attention_chunk;

/// Values summed in f32 before their sum is added in double.
constexpr int64_t logit_run = 256;

/// Neighbouring kv heads of the cache as a sequence sees them.
///
/// Layout of one layer, per block and kv head: K `[head_dim][block_size]`, so that scores of neighbouring positions are
/// neighbouring lanes; V `[block_size][head_dim]`; each followed, in an int8 cache, by `block_size` scales in f32. A table's
/// `store_kv` and `attend` may agree on another order within a block and head, of as many bytes.
///
/// Latent attention keeps one row for both, laid out as V: a position's value is its key.
struct AttentionContext {
    const uint8_t* k;  // the first head in block 0
    const uint8_t* v;
    int64_t num_heads;
    int64_t head_bytes;  // from a head to the next
    int64_t block_bytes;  // from a block to the next
    const int32_t* block_table;
    int64_t block_size;
    int64_t head_dim;
    int64_t length;  // positions that the block table covers
    float scale;
    float soft_cap;  // 0 means none
    int64_t window;  // 0 means the whole context
    int64_t chunk;  // a row sees from the last multiple of it on; 0 means none
    bool is_latent;  // keys are values; `k` is `v`
};

/// Online softmax of one row: largest score, sum of numerators (0 while the row has seen nothing), and what it sees of
/// the chunk at hand.
struct AttentionState {
    float largest;
    float total;
    int32_t low;
    int32_t high;
};

/// Columns of a row of attention buffers.
constexpr int64_t attention_stride(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

/// Rows (a token's query head each) that attend together: `count` of the first kv head, and of each other head `per_head` rows
/// on. Buffers are 64-byte aligned.
struct AttentionRows {
    int64_t count;
    int64_t per_head;
    const float* queries;  // [stride] a row, as `pack_query` left them
    const int32_t* positions;  // context index
    const int32_t* ends;       // the first one behind what a row sees
    float* accumulated;  // [stride] a row, sums of numerator * value
    AttentionState* states;
    float* keys;  // space for attention_chunk * stride
    float* values;  // likewise
    float* scores;  // space for attention_chunk a row
};

/// Keys and values of consecutive positions of one block and kv head.
struct KvRun {
    const float* k;
    const float* v;
    int64_t k_stride;
    int64_t v_stride;
    uint8_t* to_k;  // the block's head; null where a key is its value
    uint8_t* to_v;
    int64_t offset;  // of the first position in the block
    int64_t count;
    int64_t block_size;
    int64_t head_dim;
};

/// Row and vector primitives of one instruction set. A result depends on the arguments alone.
struct OpKernels {
    /// residual += in (when given), then out = norm(residual or in) * (weight + weight_offset), each `group` columns on their own. The
    /// weights of a group lie `weight_stride` behind those of the one before it.
    void (*rms_norm)(const float* in, const float* weight, float weight_offset, float eps, int64_t width, int64_t group,
                     int64_t weight_stride, float* residual, float* out);
    /// residual += in (when given), then out = (x - mean) / sqrt(variance + eps) * weight + bias, x being residual or in; bias may be null.
    void (*layer_norm)(const float* in, const float* weight, const float* bias, float eps, int64_t width, float* residual, float* out);
    /// Rotates the first 2 * pairs columns of every head; cos and sin hold one value per pair.
    void (*rope)(float* on, int64_t num_heads, int64_t head_dim, const float* cos, const float* sin, int64_t pairs,
                 RopeLayout layout);
    /// out = activation(gate) * up; clamped_swiglu as backend.ts says.
    void (*gated_activation)(Activation activation, const float* gate, const float* up, float* out, int64_t width);
    /// out += in
    void (*add)(const float* in, float* out, int64_t width);
    /// out += factor * in, each product rounded before it is added
    void (*add_scaled)(const float* in, float factor, float* out, int64_t width);
    void (*scale)(float* on, float factor, int64_t width);
    /// Bounds to [-limit, limit]; NaN stays.
    void (*clamp)(float* on, float least, float most, int64_t width);
    /// x = cap * tanh(x / cap)
    void (*soft_cap)(float* on, float cap, int64_t width);
    void (*store_kv)(KvDtype dtype, const KvRun& run);
    /// Brings a query head to the form that `attend` reads, which depends on the cache's type.
    void (*pack_query)(KvDtype dtype, const float* query, int64_t head_dim, float* packed);
    /// Takes the rows through the chunks of [begin, end), `begin` being a chunk's border; what a row does not see leaves it as it is.
    void (*attend)(KvDtype dtype, const AttentionRows& rows, const AttentionContext& context, int64_t begin, int64_t end);
    /// Adds the softmax of later positions to that of earlier ones.
    void (*fold)(AttentionState& state, float* accumulated, const AttentionState& later, const float* later_accumulated,
                 int64_t head_dim);

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

OCTAVO_DECLARE_KERNELS(OpKernels, op_kernels);
/// The table of kernel_path(KernelKind::ops).
const OpKernels& op_kernels();

}  // namespace octavo
