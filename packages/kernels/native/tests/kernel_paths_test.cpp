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

/// Products of a matrix packed now.
std::vector<float> product_now(WeightType type, ThreadPool& pool) {
    const Sample sample = make_sample(type, 40, 256, 0, false, 7);
    const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, pool);
    return product(*matrix, activations(9 * 256, 3), 9, nullptr, pool);
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
    check_probe();
    CHECK(set_kernel_path(KernelKind::ops, KernelPath::neon) == isa_supported(Isa::neon));
    return finish("kernel_paths_test");
}
