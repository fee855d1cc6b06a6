#pragma once
#include <string>
#include <vector>

#include "../../core/isa.h"

namespace octavo::test {

/// Those that this machine runs, the portable one first.
inline std::vector<Isa> supported_isas() {
    std::vector<Isa> found;
    for (const Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512}) {
        if (isa_supported(isa)) found.push_back(isa);
    }
    return found;
}

struct Target {
    Isa isa;
    bool bf16;
    std::string name() const { return std::string(isa_name(isa)) + (bf16 ? "+bf16" : ""); }
};

/// supported_isas, then AVX-512 with its bf16 where the machine has it.
inline std::vector<Target> targets() {
    std::vector<Target> found;
    for (const Isa isa : supported_isas()) found.push_back({isa, false});
    set_isa_for_test(Isa::avx512, true);
    if (has_avx512_bf16()) found.push_back({Isa::avx512, true});
    return found;
}

}  // namespace octavo::test
