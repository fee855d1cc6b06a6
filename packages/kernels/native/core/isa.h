#pragma once

namespace octavo {

enum class Isa { scalar, neon, avx2, avx512 };

/// Best instruction set this machine and build support, or the one named by OCTAVO_ISA (scalar, avx2, avx512) if supported.
/// avx512 implies F, BW, VL, DQ and VNNI; BF16 is asked for separately.
Isa active_isa();
bool has_avx512_bf16();
const char* isa_name(Isa isa);

}  // namespace octavo
