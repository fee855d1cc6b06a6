#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "../core/fatal_signals.h"
#include "../core/isa.h"
#include "../core/mapped_file.h"
#include "../core/platform.h"
#include "../matrix/layout.h"
#include "../matrix/matrix.h"
#include "../probe/kernel_probe.h"
#include "../program/adapter.h"
#include "../program/kv_cache.h"
#include "../program/op_clock.h"
#include "../program/program.h"
#include "../program/rank_group.h"
#include "../sampling/sampler_state.h"
#include "adapter_binding.h"
#include "backend_thread.h"
#include "handles.h"
#include "node_addon.h"
#include "output_fields.h"
#include "packed_binding.h"
#include "program_binding.h"
#include "source_binding.h"
#include "step_binding.h"

namespace octavo {

namespace {

/// Raised with any change to what is exported here or travels through it, together with `src/cpu/addon.ts`, so that
/// kernels of an older build are refused when they are loaded rather than misread.
constexpr int kInterfaceVersion = 10;

/// Splits a list of names at its commas.
Napi::Array split(Napi::Env env, const std::string& names) {
    Napi::Array list = Napi::Array::New(env);
    for (size_t begin = 0; begin < names.size();) {
        const size_t end = std::min(names.find(", ", begin), names.size());
        list.Set(list.Length(), names.substr(begin, end - begin));
        begin = end + 2;
    }
    return list;
}

/// What travels as an index, to be compared with `enumerations` of `src/cpu/enumerations.ts`.
Napi::Object enumerations(Napi::Env env) {
    std::string weight_types;
    for (const WeightBlock& block : kWeightBlocks) {
        weight_types += (weight_types.empty() ? "" : ", ") + std::string(block.name) + " " + std::to_string(block.columns) + " " +
                        std::to_string(block.bytes);
    }
    Napi::Object all = Napi::Object::New(env);
    all.Set("WeightType", split(env, weight_types));
    all.Set("KvDtype", split(env, kKvDtypeNames));
    all.Set("Activation", split(env, kActivationNames));
    all.Set("Packing", split(env, kPackingNames));
    all.Set("OpKind", split(env, kOpKindNames));
    all.Set("OutputKind", split(env, kOutputKindNames));
    all.Set("Pooling", split(env, kPoolingNames));
    all.Set("OutputInteger", split(env, kOutputIntegerNames));
    all.Set("OutputReal", split(env, kOutputRealNames));
    all.Set("RowError", split(env, kRowErrorNames));
    all.Set("KernelKind", split(env, kKernelKindNames));
    all.Set("KernelPath", split(env, kKernelPathNames));
    return all;
}

/// Whether kernels may run already; what they run on stays as it is from then on.
std::atomic<bool> backend_exists{false};

/// (numThreads, cores) -> handle
Napi::Value create_backend(const Napi::CallbackInfo& info) {
    using Holder = std::shared_ptr<BackendThread>;
    backend_exists = true;
    const Napi::Array given = info[1].As<Napi::Array>();
    std::vector<int> cores;
    for (uint32_t i = 0; i < given.Length(); i++) cores.push_back(given.Get(i).As<Napi::Number>().Int32Value());
    try {
        auto* holder = new Holder(BackendThread::start(info.Env(), info[0].As<Napi::Number>().Int32Value(), std::move(cores)));
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

/// (descriptor, on) -> whether it is recorded to
Napi::Value record_faults_to(const Napi::CallbackInfo& info) {
    const bool on = info[1].As<Napi::Boolean>().Value();
    return Napi::Boolean::New(info.Env(), record_faults(info[0].As<Napi::Number>().Int32Value(), on));
}

/// (descriptor) -> whether the file is ours until the descriptor is closed, or the process ends however it ends
Napi::Value lock_file(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), lock_open_file(info[0].As<Napi::Number>().Int32Value()));
}

Napi::Object instruction_set(Napi::Env env) {
    Napi::Object isa = Napi::Object::New(env);
    isa.Set("name", Napi::String::New(env, isa_name(active_isa())));
    isa.Set("bf16", Napi::Boolean::New(env, has_avx512_bf16()));
    return isa;
}

Napi::String name_of(Napi::Env env, KernelPath path) { return split(env, kKernelPathNames).Get(static_cast<uint32_t>(path)).As<Napi::String>(); }

/// () -> paths by kind
Napi::Value kernel_paths(const Napi::CallbackInfo& info) {
    const Napi::Array kinds = split(info.Env(), kKernelKindNames);
    Napi::Object paths = Napi::Object::New(info.Env());
    for (const KernelKind kind : kKernelKinds) {
        paths.Set(kinds.Get(static_cast<uint32_t>(kind)), name_of(info.Env(), kernel_path(kind)));
    }
    return paths;
}

/// (kind, path), both as indices -> whether the kind is computed on that path from now on: the machine has it, and no backend exists
Napi::Value set_path(const Napi::CallbackInfo& info) {
    const auto kind = static_cast<KernelKind>(info[0].As<Napi::Number>().Int32Value());
    const auto path = static_cast<KernelPath>(info[1].As<Napi::Number>().Int32Value());
    return Napi::Boolean::New(info.Env(), kernel_path(kind) == path || (!backend_exists && set_kernel_path(kind, path)));
}

/// (kind), as an index -> [path, seconds] of each path, the present one first; undefined once a backend exists
Napi::Value probe(const Napi::CallbackInfo& info) {
    if (backend_exists) return info.Env().Undefined();
    Napi::Array all = Napi::Array::New(info.Env());
    for (const ProbedPath& probed : probe_kernels(static_cast<KernelKind>(info[0].As<Napi::Number>().Int32Value()))) {
        Napi::Array pair = Napi::Array::New(info.Env(), 2);
        pair.Set(0u, name_of(info.Env(), probed.path));
        pair.Set(1u, Napi::Number::New(info.Env(), probed.seconds));
        all.Set(all.Length(), pair);
    }
    return all;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports.Set("interfaceVersion", Napi::Number::New(env, kInterfaceVersion));
    exports.Set("enumerations", enumerations(env));
    exports.Set("instructionSet", instruction_set(env));
    exports.Set("packedLayoutVersion", Napi::Number::New(env, kPackedLayoutVersion));
    const auto add = [&](const char* name, auto function) { exports.Set(name, Napi::Function::New(env, function)); };
    add("kernelPaths", kernel_paths);
    add("setKernelPath", set_path);
    add("probeKernels", probe);
    add("createBackend", create_backend);
    add("closeBackend", close_backend);
    add("recordFaults", record_faults_to);
    add("lockFile", lock_file);
    add("mapFile", map_file);
    add("createMatrix", create_matrix);
    add("packMore", pack_more);
    add("packedBytes", packed_bytes_of);
    add("checksumMatrix", checksum_matrix);
    add("mapMatrix", map_matrix);
    add("createVector", create_vector);
    add("createKvCache", create_kv_cache);
    add("createSamplerState", create_sampler_state);
    add("createRankGroup", create_rank_group);
    add("failRankGroup", fail_rank_group);
    add("resetRankGroup", reset_rank_group);
    add("compile", compile_program);
    add("createAdapter", create_adapter);
    add("execute", execute_step);
    add("releaseMappedFile", release_handle<MappedFile>);
    add("releaseMatrix", release_handle<Matrix>);
    add("releaseVector", release_handle<const Vector>);
    add("releaseProgram", release_handle<Program>);
    add("releaseRankGroup", release_handle<RankGroup>);
    add("releaseAdapter", release_handle<const Adapter>);
    add("releaseKvCache", release_handle<KvCache>);
    add("releaseSamplerState", release_handle<SamplerState>);
    return exports;
}

}  // namespace

NODE_API_MODULE(octavo_kernels, init)

}  // namespace octavo
