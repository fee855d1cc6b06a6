#include "adapter_binding.h"

#include <memory>
#include <utility>

#include "../program/adapter.h"
#include "handles.h"

namespace octavo {

/// (sites) -> handle. Keeps the matrices alive.
Napi::Value create_adapter(const Napi::CallbackInfo& info) {
    const Napi::Array sites = info[0].As<Napi::Array>();
    auto adapter = std::make_shared<Adapter>();
    for (uint32_t i = 0; i < sites.Length(); i++) {
        const Napi::Object source = sites.Get(i).As<Napi::Object>();
        AdapterSite site{unwrap<Matrix>(source.Get("down")), {}};
        const Napi::Array parts = source.Get("parts").As<Napi::Array>();
        int64_t rank_begin = 0;
        for (uint32_t k = 0; k < parts.Length(); k++) {
            const Napi::Object part = parts.Get(k).As<Napi::Object>();
            const std::shared_ptr<Matrix> up = unwrap<Matrix>(part.Get("up"));
            const int64_t rank = up->cols();
            site.parts.push_back({part.Get("column").As<Napi::Number>().Int64Value(), rank_begin,
                                  part.Get("scale").As<Napi::Number>().FloatValue(), up});
            rank_begin += rank;
        }
        const size_t index = source.Get("site").As<Napi::Number>().Uint32Value();
        if (adapter->sites.size() <= index) adapter->sites.resize(index + 1);
        adapter->sites[index] = std::move(site);
    }
    return wrap<const Adapter>(info.Env(), std::move(adapter));
}

}  // namespace octavo
