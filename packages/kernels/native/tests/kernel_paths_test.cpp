// Kernels chosen kind by kind: each on its own path, with that path's bits, and what times them leaves everything as it was.
#include <memory>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../probe/kernel_probe.h"
#include "support/check.h"
#include "support/mapped_tensors.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

std::vector<KernelPath> all_paths() {
    std::vector<KernelPath> paths;
    for (const KernelKind kind : kKernelKinds) paths.push_back(kernel_path(kind));
    return paths;
}

/// Products of a matrix packed now. An odd number of panels.
std::vector<float> product_now(WeightType type, ThreadPool& pool, int64_t m = 9) {
    constexpr int64_t kColumns = 256 * 3;
    const Sample sample = make_sample(type, 40, kColumns, kColumns, false, 7);
    const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, pool);
    return product(*matrix, activations(m * kColumns, 3), m, nullptr, pool);
}

/// Weights of a kind follow its path and no other's.
void check_kinds_apart(ThreadPool& pool) {
    const std::pair<KernelKind, WeightType> kinds[] = {{KernelKind::f32, WeightType::f32},
                                                       {KernelKind::f32, WeightType::f16},
                                                       {KernelKind::bf16, WeightType::bf16},
                                                       {KernelKind::quantised, WeightType::q4_k}};
    const Target best = all_targets().back();
    for (const auto& [kind, type] : kinds) {
        for (const Target& target : all_targets()) {
            set_isa_for_test(target.isa, target.bf16);
            const KernelPath path = kernel_path(kind);
            const std::vector<float> expected = product_now(type, pool);
            set_isa_for_test(best.isa, best.bf16);
            const std::vector<float> before = product_now(type, pool);
            CHECK(set_kernel_path(kind, path) && kernel_path(kind) == path);
            CHECK_MESSAGE(same_bits(product_now(type, pool), expected), target.name() + ": another path's bits");
            set_isa_for_test(best.isa, best.bf16);
            for (const KernelKind other : kKernelKinds) {
                if (other != kind) set_kernel_path(other, KernelPath::scalar);
            }
            CHECK_MESSAGE(same_bits(product_now(type, pool), before), target.name() + ": follows another kind's path");
        }
    }
}

/// Tiles give the bits of vectors, for whole tiles of rows and the rest.
void check_tiles(ThreadPool& pool) {
    set_isa_for_test(Isa::avx512, true);
    if (kernel_path(KernelKind::quantised) != KernelPath::avx512_amx) return;
    for (const WeightType type : {WeightType::q4_0, WeightType::q5_0, WeightType::q8_0, WeightType::q4_k, WeightType::q5_k,
                                  WeightType::q6_k, WeightType::q4_1, WeightType::q5_1, WeightType::iq4_nl, WeightType::mxfp4,
                                  WeightType::int8}) {
        for (const int64_t m : {49, 64, 133}) {
            CHECK(set_kernel_path(KernelKind::quantised, KernelPath::avx512_amx));
            const std::vector<float> tiles = product_now(type, pool, m);
            CHECK(set_kernel_path(KernelKind::quantised, KernelPath::avx512));
            CHECK_MESSAGE(same_bits(tiles, product_now(type, pool, m)), std::to_string(m) + " rows: not the bits of vectors");
        }
    }
    CHECK(!set_kernel_path(KernelKind::bf16, KernelPath::avx512_amx));
}

void check_probe() {
    for (const Target& target : targets()) {
        set_isa_for_test(target.isa, target.bf16);
        const std::vector<KernelPath> before = all_paths();
        for (const KernelKind kind : kKernelKinds) {
            const std::vector<ProbedPath> probed = probe_kernels(kind);
            CHECK(!probed.empty() && probed.front().path == kernel_path(kind));
            const bool chooses = target.isa == Isa::avx512;
            CHECK_MESSAGE((probed.size() > 1) == chooses, target.name() + " has " + std::to_string(probed.size()) + " paths");
            for (const ProbedPath& path : probed) CHECK((path.seconds > 0) == chooses);
        }
        CHECK(all_paths() == before);
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    ThreadPool pool(2);
    check_kinds_apart(pool);
    check_tiles(pool);
    check_probe();
    CHECK(set_kernel_path(KernelKind::ops, KernelPath::neon) == isa_supported(Isa::neon));
    return finish("kernel_paths_test");
}
