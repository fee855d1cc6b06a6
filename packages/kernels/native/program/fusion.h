#pragma once
#include <cstdint>
#include <vector>

#include "program.h"

namespace octavo {

/// Whether an op reads, or writes, any column of a buffer. What an op updates in place it does both to.
bool reads(const Op& op, int32_t buffer);
bool writes(const Op& op, int32_t buffer);

/// Joins ops whose intermediate values nobody else sees, so that they stay in the nearest cache; results are the same bits.
/// A linear and the gated activation of its whole output become one op, and a norm learns which matrix its output is for.
void fuse(std::vector<Op>& ops, const BufferSpan& hidden);

}  // namespace octavo
