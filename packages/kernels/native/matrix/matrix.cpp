#include "matrix.h"

#include <algorithm>

#include "../core/isa.h"
#include "coded_matrix.h"
#include "float_matrix.h"
#include "in_place_matrix.h"
#include "layout.h"
#include "ordered_matrix.h"
#include "quantised_matrix.h"

namespace octavo {

const QuantisedKernelTable& quantised_kernels() {
    switch (active_isa()) {
#if defined(__x86_64__)
        case Isa::avx512:
            return quantised_kernels_avx512();
        case Isa::avx2:
            return quantised_kernels_avx2();
#elif defined(__aarch64__)
        case Isa::neon:
            return quantised_kernels_neon();
#endif
        default:
            return quantised_kernels_scalar();
    }
}

const FloatKernelTable& float_kernels() {
    switch (active_isa()) {
#if defined(__x86_64__)
        case Isa::avx512:
            return has_avx512_bf16() ? float_kernels_avx512_bf16() : float_kernels_avx512();
        case Isa::avx2:
            return float_kernels_avx2();
#elif defined(__aarch64__)
        case Isa::neon:
            return float_kernels_neon();
#endif
        default:
            return float_kernels_scalar();
    }
}

bool Matrix::can_gate() const { return rows() % (2 * kPanelRows) == 0; }

void Matrix::encode_all(const float* x, int64_t ldx, int64_t m, void* rows, ThreadPool& pool) const {
    // Below this many activations, encoding them is not worth waking a thread for.
    constexpr int64_t kSerialActivations = 16384;
    const auto encode_some = [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) encode(x + row * ldx, row, m, rows);
    };
    if (m * cols() <= kSerialActivations) {
        encode_some(0, m, 0);
    } else {
        pool.parallel_for(m, std::max<int64_t>(1, kSerialActivations / 2 / cols()), encode_some);
    }
}

void Matrix::linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias, Workspace& workspace,
                    ThreadPool& pool) const {
    if (m <= 0) return;
    void* rows = workspace.get(Workspace::kRowsSlot, encoded_bytes(m));
    encode_all(x, ldx, m, rows, pool);
    multiply(rows, m, {y, ldy, bias, nullptr}, workspace, pool);
}

std::unique_ptr<Matrix> Matrix::in_place_or_packed(const std::vector<MatrixSource>& sources, ThreadPool& pool) {
    if (!InPlaceMatrix::suits(sources)) return pack(sources, pool);
    return std::make_unique<InPlaceMatrix>(SourceStack(sources), sources, pool);
}

std::unique_ptr<Matrix> Matrix::pack(const std::vector<MatrixSource>& sources, ThreadPool& pool) {
    const SourceStack stack(sources);
    switch (stack.type()) {
        case WeightType::f32:
        case WeightType::f16:
        case WeightType::bf16:
            return std::make_unique<FloatMatrix>(stack, pool);
        case WeightType::f8_e4m3:
        case WeightType::uint8:
        case WeightType::table4:
            if (!is_plain_uint8(sources.front())) {
                return in_column_order(std::make_unique<CodedMatrix>(stack, pool), sources.front().column_order);
            }
            [[fallthrough]];
        default:
            return in_column_order(std::make_unique<QuantisedMatrix>(pack_quantised(stack, pool)),
                                   sources.front().column_order);
    }
}

}  // namespace octavo
