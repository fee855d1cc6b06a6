#pragma once
#include <cstdint>

namespace octavo::test {

/// Runs a loop of independent multiply-adds on registers alone; returns something that depends on all of them.
using PeakLoop = int32_t (*)(int64_t rounds);

/// What one core can do at most in one instruction set; a null loop where it has no such instruction.
struct Peak {
    PeakLoop int8;
    /// Operations of a round, a multiply-add counted as two.
    int64_t int8_ops;
    PeakLoop bf16;
    int64_t bf16_ops;
    PeakLoop f32;
    int64_t f32_ops;
};

#if defined(__x86_64__)
Peak peak_avx2();
Peak peak_avx512();
/// bf16 alone.
Peak peak_avx512_bf16();
/// int8 alone.
Peak peak_avx512_amx();
#endif

}  // namespace octavo::test
