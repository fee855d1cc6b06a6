#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "matrix.h"

namespace octavo {

/// The matrix whose column `order[j]` is column j of `packed`: activations are gathered into packed order first.
/// GPTQ's act-order sorts columns by group that way. Returns `packed` itself when `order` is empty.
std::unique_ptr<Matrix> in_column_order(std::unique_ptr<Matrix> packed, const std::vector<int32_t>& order);

}  // namespace octavo
