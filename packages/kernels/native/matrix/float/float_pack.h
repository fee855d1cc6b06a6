#pragma once
#include <cstdint>

#include "../panel_rows.h"

namespace octavo {

/// Bytes of a packed panel: bf16 columns come in pairs.
int64_t float_panel_bytes(WeightType type, int64_t cols);

/// Writes one panel of f32, f16 or bf16 rows as FloatPanels lays them out; the first row that is not finite, -1 when all are.
int pack_float_panel(WeightType type, const PanelRows& rows, int64_t cols, uint8_t* out);

}  // namespace octavo
