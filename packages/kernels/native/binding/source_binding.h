#pragma once
#include "../core/enumeration.h"
#include "node_addon.h"

namespace octavo {

/// `MatrixOptions` of backend.ts.
OCTAVO_ENUMERATION(Packing, now, in_place, later);

// Face: packages/kernels/src/cpu/addon.ts.
Napi::Value map_file(const Napi::CallbackInfo& info);
Napi::Value create_matrix(const Napi::CallbackInfo& info);
Napi::Value pack_more(const Napi::CallbackInfo& info);
Napi::Value create_vector(const Napi::CallbackInfo& info);

}  // namespace octavo
