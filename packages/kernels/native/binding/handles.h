#pragma once
#include <cstddef>
#include <memory>
#include <utility>

#include "node_addon.h"

namespace octavo {

// A handle is a napi External around a shared_ptr. JavaScript disposes it, or the collector does; jobs and programs hold
// references of their own, so that disposing never pulls memory from under a running step. The face in TypeScript
// guarantees that a handle has the right type and has not been disposed.

template <typename T>
Napi::Value wrap(Napi::Env env, std::shared_ptr<T> object) {
    using Holder = std::shared_ptr<T>;
    return Napi::External<Holder>::New(env, new Holder(std::move(object)), [](Napi::Env, Holder* holder) { delete holder; });
}

/// { handle, byteLength }
template <typename T>
Napi::Object wrap_sized(Napi::Env env, std::shared_ptr<T> object, size_t bytes) {
    Napi::Object result = Napi::Object::New(env);
    result.Set("byteLength", Napi::Number::New(env, static_cast<double>(bytes)));
    result.Set("handle", wrap<T>(env, std::move(object)));
    return result;
}

template <typename T>
std::shared_ptr<T> unwrap(const Napi::Value& handle) {
    return *handle.As<Napi::External<std::shared_ptr<T>>>().Data();
}

template <typename T>
std::shared_ptr<T> unwrap_or_null(const Napi::Value& handle) {
    return handle.IsUndefined() ? nullptr : unwrap<T>(handle);
}

template <typename T>
void release_handle(const Napi::CallbackInfo& info) {
    info[0].As<Napi::External<std::shared_ptr<T>>>().Data()->reset();
}

}  // namespace octavo
