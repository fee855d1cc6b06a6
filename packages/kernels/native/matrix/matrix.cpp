#include "matrix.h"

#include <algorithm>

#include "../core/isa.h"
#include "codebook/codebook_matrix.h"
#include "float/float_matrix.h"
#include "in_place/in_place_matrix.h"
#include "layout.h"
#include "ordered_matrix.h"
#include "quantised/quantised_packer.h"

namespace octavo {

const QuantisedKernelTable& quantised_kernels() {
    const KernelPath path = kernel_path(KernelKind::quantised);
#if defined(__x86_64__)
    if (path == KernelPath::avx512_amx) return quantised_kernels_avx512_amx;
#endif
    return OCTAVO_KERNELS_OF(path, quantised_kernels);
}

const FloatKernelTable& float_kernels(KernelKind kind) { return OCTAVO_KERNELS_OF(kernel_path(kind), float_kernels); }

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
    return std::make_unique<InPlaceMatrix>(SourceStack(sources), pool);
}

namespace {

bool is_quantised(const MatrixSource& source) {
    if (source.type == WeightType::uint8) return is_plain_uint8(source);
    return !is_float(source.type) && !is_codebook(source.type);
}

std::unique_ptr<Matrix> pack_quantised(const QuantisedPacker& packer, ThreadPool& pool) {
    QuantisedPanels panels = packer.panels();
    panels.memory = AlignedMemory(panels.bytes());
    packer.pack_pairs(panels, 0, panels.pairs(), pool);
    return std::make_unique<QuantisedMatrix>(std::move(panels));
}

}  // namespace

std::unique_ptr<Matrix> Matrix::pack_later(const std::vector<MatrixSource>& sources, ThreadPool& pool) {
    if (InPlaceMatrix::suits(sources)) {
        return std::make_unique<FloatMatrix>(std::make_unique<const InPlaceMatrix>(SourceStack(sources), pool));
    }
    if (!sources.empty() && is_quantised(sources.front())) {
        auto packer = std::make_unique<QuantisedPacker>(sources);
        if (packer->can_check()) {
            packer->check(pool);
            return std::make_unique<QuantisedMatrix>(std::move(packer));
        }
    }
    return pack(sources, pool);
}

std::unique_ptr<Matrix> Matrix::pack(const std::vector<MatrixSource>& sources, ThreadPool& pool) {
    const SourceStack stack(sources);
    if (is_float(stack.type())) return std::make_unique<FloatMatrix>(stack, pool);
    const std::vector<int32_t>& order = sources.front().column_order;
    if (is_quantised(sources.front())) return in_column_order(pack_quantised(QuantisedPacker(sources), pool), order);
    return in_column_order(std::make_unique<CodebookMatrix>(stack, pool), order);
}

}  // namespace octavo
