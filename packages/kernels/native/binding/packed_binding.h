#pragma once
#include "node_addon.h"

namespace octavo {

// Face: packages/kernels/src/cpu/addon.ts.
Napi::Value packed_bytes_of(const Napi::CallbackInfo& info);
Napi::Value checksum_matrix(const Napi::CallbackInfo& info);
Napi::Value map_matrix(const Napi::CallbackInfo& info);

}  // namespace octavo
