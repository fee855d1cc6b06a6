#pragma once
#include "node_addon.h"

namespace octavo {

// Face: packages/kernels/src/native/addon.ts.
Napi::Value map_file(const Napi::CallbackInfo& info);
Napi::Value create_matrix(const Napi::CallbackInfo& info);
Napi::Value pack_more(const Napi::CallbackInfo& info);
Napi::Value create_vector(const Napi::CallbackInfo& info);

}  // namespace octavo
