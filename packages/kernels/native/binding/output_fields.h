#pragma once
#include <cstddef>

#include "../core/enumeration.h"

namespace octavo {

// Numbers of an output row in the flat arrays of packages/kernels/src/cpu/encode-outputs.ts, with the names they have there.
OCTAVO_ENUMERATION(OutputInteger, kind, target, numTop, numIds, topK, index, suppressStops, state, mask, afterDraft, wantDigest, pooling, numPooled);
OCTAVO_ENUMERATION(OutputReal, temperature, topP, minP);
constexpr size_t num_output_integers = static_cast<size_t>(OutputInteger::numPooled) + 1;
constexpr size_t num_output_reals = static_cast<size_t>(OutputReal::minP) + 1;

}  // namespace octavo
