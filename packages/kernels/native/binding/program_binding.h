#pragma once
#include "node_addon.h"

namespace octavo {

// Face: packages/kernels/src/cpu/addon.ts.
Napi::Value compile_program(const Napi::CallbackInfo& info);
Napi::Value create_rank_group(const Napi::CallbackInfo& info);
void fail_rank_group(const Napi::CallbackInfo& info);
void reset_rank_group(const Napi::CallbackInfo& info);
Napi::Value create_kv_cache(const Napi::CallbackInfo& info);
Napi::Value create_sampler_state(const Napi::CallbackInfo& info);

}  // namespace octavo
