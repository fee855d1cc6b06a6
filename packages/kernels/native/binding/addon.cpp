#include "../core/isa.h"
#include "../core/mapped_file.h"
#include "../matrix/layout.h"
#include "../matrix/matrix.h"
#include "../program/adapter.h"
#include "../program/kv_cache.h"
#include "../program/program.h"
#include "../sampling/sampler_state.h"
#include "adapter_binding.h"
#include "backend_thread.h"
#include "handles.h"
#include "node_addon.h"
#include "packed_binding.h"
#include "program_binding.h"
#include "source_binding.h"
#include "step_binding.h"

namespace octavo {

namespace {

/// Raised with any change to what is exported here or travels through it, together with `src/native/addon.ts`, so that
/// kernels of an older build are refused when they are loaded rather than misread.
constexpr int kInterfaceVersion = 3;

/// (numThreads) -> handle
Napi::Value create_backend(const Napi::CallbackInfo& info) {
    using Holder = std::shared_ptr<BackendThread>;
    try {
        auto* holder = new Holder(BackendThread::start(info.Env(), info[0].As<Napi::Number>().Int32Value()));
        // A backend that nobody disposed ends its thread when it is collected.
        return Napi::External<Holder>::New(info.Env(), holder, [](Napi::Env, Holder* collected) {
            if (*collected) (*collected)->close();
            delete collected;
        });
    } catch (const std::exception& error) {
        throw Napi::Error::New(info.Env(), error.what());
    }
}

/// (backend). Its threads end, and its memory goes, with the last job.
void close_backend(const Napi::CallbackInfo& info) {
    unwrap<BackendThread>(info[0])->close();
    release_handle<BackendThread>(info);
}

Napi::Object instruction_set(Napi::Env env) {
    Napi::Object isa = Napi::Object::New(env);
    isa.Set("name", Napi::String::New(env, isa_name(active_isa())));
    isa.Set("bf16", Napi::Boolean::New(env, has_avx512_bf16()));
    return isa;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports.Set("interfaceVersion", Napi::Number::New(env, kInterfaceVersion));
    exports.Set("instructionSet", instruction_set(env));
    exports.Set("createBackend", Napi::Function::New(env, create_backend));
    exports.Set("closeBackend", Napi::Function::New(env, close_backend));
    exports.Set("mapFile", Napi::Function::New(env, map_file));
    exports.Set("createMatrix", Napi::Function::New(env, create_matrix));
    exports.Set("packMore", Napi::Function::New(env, pack_more));
    exports.Set("packedLayoutVersion", Napi::Number::New(env, kPackedLayoutVersion));
    exports.Set("packedBytes", Napi::Function::New(env, packed_bytes_of));
    exports.Set("checksumMatrix", Napi::Function::New(env, checksum_matrix));
    exports.Set("mapMatrix", Napi::Function::New(env, map_matrix));
    exports.Set("createVector", Napi::Function::New(env, create_vector));
    exports.Set("createKvCache", Napi::Function::New(env, create_kv_cache));
    exports.Set("createSamplerState", Napi::Function::New(env, create_sampler_state));
    exports.Set("compile", Napi::Function::New(env, compile_program));
    exports.Set("createAdapter", Napi::Function::New(env, create_adapter));
    exports.Set("execute", Napi::Function::New(env, execute_step));
    exports.Set("releaseMappedFile", Napi::Function::New(env, release_handle<MappedFile>));
    exports.Set("releaseMatrix", Napi::Function::New(env, release_handle<Matrix>));
    exports.Set("releaseVector", Napi::Function::New(env, release_handle<const Vector>));
    exports.Set("releaseProgram", Napi::Function::New(env, release_handle<Program>));
    exports.Set("releaseAdapter", Napi::Function::New(env, release_handle<const Adapter>));
    exports.Set("releaseKvCache", Napi::Function::New(env, release_handle<KvCache>));
    exports.Set("releaseSamplerState", Napi::Function::New(env, release_handle<SamplerState>));
    return exports;
}

}  // namespace

NODE_API_MODULE(octavo_kernels, init)

}  // namespace octavo
