#include "kernel_probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>

#include "../matrix/matrix.h"
#include "../program/kv_cache.h"

namespace octavo {

namespace {

/// Alternations; a path's time is its shortest, which others on the machine disturb least.
constexpr int kRounds = 12;
constexpr int64_t kRows = 128;
constexpr int64_t kColumns = 512;
constexpr int64_t kTokens = 48;

using Work = std::function<void()>;

/// A product with `kTokens` rows of activations. The weights fit the second-level cache.
Work product(const MatrixSource& source, ThreadPool& pool) {
    const std::shared_ptr<const Matrix> matrix = Matrix::pack({source}, pool);
    return [matrix, &pool, workspace = std::make_shared<Workspace>(), x = std::vector<float>(kTokens * kColumns, 0.5f),
            y = std::vector<float>(kTokens * kRows)]() mutable {
        matrix->linear(x.data(), kColumns, kTokens, y.data(), kRows, nullptr, *workspace, pool);
    };
}

Work weights(WeightType type, ThreadPool& pool) {
    // Zeros are finite weights of every type.
    const std::vector<uint8_t> values(kRows * kColumns * sizeof(float));
    const std::vector<uint8_t> scales(kRows * sizeof(float));
    MatrixSource source{type, kRows, kColumns, values.data(), nullptr, nullptr, 0, "probe"};
    if (type == WeightType::f8_e4m3) {
        source.scales = scales.data();
        source.group = kColumns;
    }
    return product(source, pool);
}

/// Attention of `kTokens` tokens over a bf16 cache.
Work attention(ThreadPool& pool) {
    struct State {
        KvShape shape{KvDtype::bf16, 16, 16, 2, 64};
        AttentionSpec spec{8, 2, 64, 0.125f, 0.0f, 0};
        KvCache cache{shape, 1};
        std::vector<float> q = std::vector<float>(kTokens * 8 * 64, 0.5f);
        std::vector<float> kv = std::vector<float>(kTokens * 2 * 64, 0.5f);
        std::vector<int32_t> slots = std::vector<int32_t>(kTokens);
        std::vector<int32_t> blocks = std::vector<int32_t>(16);
        int32_t starts[2] = {0, kTokens};
        int32_t length = 256;
        int32_t table_starts[2] = {0, 16};
    };
    const auto state = std::make_shared<State>();
    for (int32_t i = 0; i < 16; i++) state->blocks[static_cast<size_t>(i)] = i;
    for (int32_t i = 0; i < kTokens; i++) state->slots[static_cast<size_t>(i)] = 256 - static_cast<int32_t>(kTokens) + i;
    return [state, attend = std::make_shared<Attention>(pool)] {
        State& s = *state;
        const StepLayout step{kTokens, 1, s.slots.data(), s.starts, &s.length, s.blocks.data(), s.table_starts};
        attend->begin(step);
        attend->store(s.shape, s.cache.layer(0), {s.kv.data(), 2 * 64}, {s.kv.data(), 2 * 64});
        attend->attend(s.spec, s.shape, s.cache.layer(0), {s.q.data(), 8 * 64}, {s.q.data(), 8 * 64});
    };
}

Work work_of(KernelKind kind, ThreadPool& pool) {
    switch (kind) {
        case KernelKind::f32:
            return weights(WeightType::f32, pool);
        case KernelKind::bf16:
            return weights(WeightType::bf16, pool);
        case KernelKind::quantised:
            return weights(WeightType::q8_0, pool);
        case KernelKind::codebook:
            return weights(WeightType::f8_e4m3, pool);
        case KernelKind::ops:
            break;
    }
    return attention(pool);
}

/// The present path and the lesser ones whose tables differ from it.
std::vector<ProbedPath> candidates(KernelKind kind) {
    const KernelPath present = kernel_path(kind);
    std::vector<ProbedPath> found{{present, 0}};
    const bool uses_bf16 = kind != KernelKind::f32 && kind != KernelKind::quantised;
    if (present == KernelPath::avx512_bf16 && uses_bf16) found.push_back({KernelPath::avx512, 0});
    if (present == KernelPath::avx512_amx) found.push_back({KernelPath::avx512, 0});
    if (present >= KernelPath::avx512) found.push_back({KernelPath::avx2, 0});
    return found;
}

}  // namespace

std::vector<ProbedPath> probe_kernels(KernelKind kind) {
    using Clock = std::chrono::steady_clock;
    std::vector<ProbedPath> probed = candidates(kind);
    if (probed.size() == 1) return probed;
    const KernelPath present = probed.front().path;
    ThreadPool pool(1);
    std::vector<Work> work;
    for (const ProbedPath& candidate : probed) {
        set_kernel_path(kind, candidate.path);
        work.push_back(work_of(kind, pool));
    }
    for (int round = 0; round <= kRounds; ++round) {
        for (size_t i = 0; i < probed.size(); ++i) {
            set_kernel_path(kind, probed[i].path);
            const Clock::time_point start = Clock::now();
            work[i]();
            const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
            // The first round warms the caches.
            if (round == 1 || (round > 1 && seconds < probed[i].seconds)) probed[i].seconds = seconds;
        }
    }
    set_kernel_path(kind, present);
    return probed;
}

}  // namespace octavo
