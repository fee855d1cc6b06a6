#pragma once
#include <cstdint>

#include "panel_rows.h"

namespace octavo {

/// Writes one panel of f32, f16 or bf16 rows as FloatPanels lays them out; the first row that is not finite, -1 when all are.
int pack_float_panel(WeightType type, const PanelRows& rows, int64_t cols, uint8_t* out);

}  // namespace octavo
