#include "matrix.h"

#include "../core/isa.h"
#include "float_matrix.h"
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

std::unique_ptr<Matrix> Matrix::pack(const std::vector<MatrixSource>& sources, ThreadPool& pool) {
    const SourceStack stack(sources);
    switch (stack.type()) {
        case WeightType::f32:
        case WeightType::f16:
        case WeightType::bf16:
            return std::make_unique<FloatMatrix>(stack, pool);
        default:
            return in_column_order(std::make_unique<QuantisedMatrix>(pack_quantised(stack, pool)),
                                   sources.front().column_order);
    }
}

}  // namespace octavo
