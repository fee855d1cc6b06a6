#pragma once
#include <cstdlib>
#include <string>
#include <vector>

#include "../../core/isa.h"

namespace octavo::test {

struct Target {
    Isa isa;
    bool bf16;
    std::string name() const { return std::string(isa_name(isa)) + (bf16 ? "+bf16" : ""); }
};

/// What this machine runs: the portable one first, AVX-512 with its bf16 last.
inline std::vector<Target> all_targets() {
    std::vector<Target> found;
    for (const Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512}) {
        if (isa_supported(isa)) found.push_back({isa, false});
    }
    set_isa_for_test(Isa::avx512, true);
    if (has_avx512_bf16()) found.push_back({Isa::avx512, true});
    return found;
}

/// All of them, or the last with OCTAVO_TEST_TARGETS=best.
inline std::vector<Target> targets() {
    const std::vector<Target> all = all_targets();
    const char* wanted = std::getenv("OCTAVO_TEST_TARGETS");
    return wanted != nullptr && std::string(wanted) == "best" ? std::vector<Target>{all.back()} : all;
}

}  // namespace octavo::test
