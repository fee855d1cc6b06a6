#pragma once
#include <cstdint>
#include <vector>

#include "program.h"

namespace octavo {

/// Whether an op reads, or writes, any column of a buffer. What an op updates in place it does both to.
bool reads(const Op& op, int32_t buffer);
bool writes(const Op& op, int32_t buffer);

/// Fuses ops whose intermediate values no other op reads, so that they stay in the first-level cache; results are the same bits.
/// A linear and the gated activation of its whole output become one op; a norm encodes its rows for the matrix that reads them.
void fuse(std::vector<Op>& ops, const BufferSpan& hidden);

}  // namespace octavo
