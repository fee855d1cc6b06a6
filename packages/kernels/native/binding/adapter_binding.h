#pragma once
#include "node_addon.h"

namespace octavo {

Napi::Value create_adapter(const Napi::CallbackInfo& info);

}  // namespace octavo
