#pragma once
#include "node_addon.h"

namespace octavo {

// Face: packages/kernels/src/cpu/addon.ts.
Napi::Value execute_step(const Napi::CallbackInfo& info);

}  // namespace octavo
