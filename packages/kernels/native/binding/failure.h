#pragma once
#include <string>

#include "node_addon.h"

namespace octavo {

/// A failure on its way to JavaScript: `code` is one of the error codes of packages/protocol/src/errors.ts.
struct Failure {
    const char* code = nullptr;
    std::string message;

    bool happened() const { return code != nullptr; }

    Napi::Error to_error(Napi::Env env) const {
        Napi::Error error = Napi::Error::New(env, message);
        error.Set("code", Napi::String::New(env, code));
        return error;
    }
};

}  // namespace octavo
