#include "step_binding.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "../program/adapter.h"
#include "../program/executor.h"
#include "backend_thread.h"
#include "failure.h"
#include "handles.h"
#include "output_fields.h"

namespace octavo {

namespace {

/// Plans and results whose vectors have grown to fit, per JavaScript thread.
struct StepMemory {
    StepPlan plan;
    StepResult result;
    std::vector<int32_t> output_tokens;
};

std::vector<std::unique_ptr<StepMemory>>& idle_memory() {
    static thread_local std::vector<std::unique_ptr<StepMemory>> idle;
    return idle;
}

std::unique_ptr<StepMemory> take_memory() {
    auto& idle = idle_memory();
    if (idle.empty()) return std::make_unique<StepMemory>();
    auto memory = std::move(idle.back());
    idle.pop_back();
    return memory;
}

void give_memory(std::unique_ptr<StepMemory> memory) {
    // Two steps overlap at most in a pipelined engine; raw logits are too large to keep for a rare request.
    constexpr size_t worth_keeping = 2;
    memory->plan.states.clear();
    memory->plan.adapters.clear();
    memory->result.logits = {};
    auto& idle = idle_memory();
    if (idle.size() < worth_keeping) idle.push_back(std::move(memory));
}

template <typename Array, typename T>
Array to_array(Napi::Env env, const std::vector<T>& values) {
    Array array = Array::New(env, values.size());
    std::copy(values.begin(), values.end(), array.Data());
    return array;
}

template <typename Array, typename T>
void set_part(Napi::Object& object, const char* key, const std::vector<T>& values) {
    if (!values.empty()) object.Set(key, to_array<Array>(object.Env(), values));
}

class StepJob final : public Job {
public:
    StepJob(Napi::Env env, std::shared_ptr<Program> program, std::shared_ptr<KvCache> cache)
        : deferred_(Napi::Promise::Deferred::New(env)),
          program_(std::move(program)),
          cache_(std::move(cache)),
          memory_(take_memory()) {}

    StepPlan& plan() { return memory_->plan; }
    /// Scratch for reading the plan.
    std::vector<int32_t>& output_tokens() { return memory_->output_tokens; }
    Napi::Value promise() const { return deferred_.Promise(); }

    void run(BackendThread& backend) noexcept override {
        try {
            backend.executor().run(*program_, *cache_, memory_->plan, memory_->result, backend.cancelled());
        } catch (const std::bad_alloc&) {
            failure_ = {"out_of_memory", "not enough memory to run the step"};
        } catch (const std::exception& error) {
            failure_ = {"internal_error", error.what()};
        }
    }

    void settle(napi_env raw_env) override {
        const Napi::Env env(raw_env);
        const Napi::HandleScope scope(env);
        try {
            if (failure_.happened()) {
                deferred_.Reject(failure_.to_error(env).Value());
            } else {
                deferred_.Resolve(to_object(env));
            }
        } catch (const Napi::Error& error) {
            // Results too large for JavaScript's heap. When the environment is going away this throws again.
            deferred_.Reject(error.Value());
        }
        give_memory(std::move(memory_));
    }

    void abandon() override {}

private:
    Napi::Object to_object(Napi::Env env) const {
        const StepResult& result = memory_->result;
        Napi::Object object = Napi::Object::New(env);
        object.Set("computeMs", Napi::Number::New(env, result.compute_ms));
        set_part<Napi::Float32Array>(object, "sent", result.sent);
        object.Set("exchangedBytes", Napi::Number::New(env, static_cast<double>(result.exchanged_bytes)));
        object.Set("exchangeMs", Napi::Number::New(env, result.exchange_ms));
        object.Set("tokens", to_array<Napi::Int32Array>(env, result.tokens));
        const std::vector<OutputRow>& rows = memory_->plan.outputs;
        if (std::any_of(result.errors.begin(), result.errors.end(), [](uint8_t error) { return error != 0; })) {
            object.Set("errors", to_array<Napi::Uint8Array>(env, result.errors));
        }
        if (std::any_of(rows.begin(), rows.end(), [](const OutputRow& row) { return row.wants_logprobs; })) {
            object.Set("logprobs", to_array<Napi::Float32Array>(env, result.logprobs));
            object.Set("ranks", to_array<Napi::Int32Array>(env, result.ranks));
        }
        set_part<Napi::Int32Array>(object, "topTokens", result.top_tokens);
        set_part<Napi::Float32Array>(object, "topLogprobs", result.top_logprobs);
        set_part<Napi::Float32Array>(object, "idLogprobs", result.id_logprobs);
        set_part<Napi::Float32Array>(object, "hidden", result.hidden);
        set_part<Napi::Float32Array>(object, "logits", result.logits);
        set_part<Napi::BigUint64Array>(object, "digests", result.digests);
        set_part<Napi::Int32Array>(object, "opCounts", result.op_counts);
        set_part<Napi::Float64Array>(object, "opMs", result.op_ms);
        return object;
    }

    Napi::Promise::Deferred deferred_;
    std::shared_ptr<Program> program_;
    std::shared_ptr<KvCache> cache_;
    std::unique_ptr<StepMemory> memory_;
    Failure failure_;
};

/// Copies the first `count` elements, or all.
void copy_integers(const Napi::Object& plan, const char* key, std::vector<int32_t>& out, int64_t count = -1) {
    const Napi::Int32Array array = plan.Get(key).As<Napi::Int32Array>();
    out.assign(array.Data(), array.Data() + (count < 0 ? static_cast<int64_t>(array.ElementLength()) : count));
}

/// Empty where there are none.
void copy_floats(const Napi::Object& plan, const char* key, std::vector<float>& out) {
    out.clear();
    if (!plan.Has(key)) return;
    const Napi::Float32Array array = plan.Get(key).As<Napi::Float32Array>();
    out.assign(array.Data(), array.Data() + array.ElementLength());
}

/// Copies masks, all of one length, one after another; returns that length.
size_t copy_masks(const Napi::Array& masks, std::vector<uint32_t>& out) {
    out.clear();
    size_t words = 0;
    for (uint32_t i = 0; i < masks.Length(); i++) {
        const Napi::Uint32Array mask = masks.Get(i).As<Napi::Uint32Array>();
        words = mask.ElementLength();
        out.insert(out.end(), mask.Data(), mask.Data() + words);
    }
    return words;
}

void read_outputs(const Napi::Object& rows, const std::vector<int32_t>& output_tokens, StepPlan& plan) {
    const Napi::Int32Array integers = rows.Get("integers").As<Napi::Int32Array>();
    const Napi::Float32Array reals = rows.Get("reals").As<Napi::Float32Array>();
    const Napi::BigUint64Array seeds = rows.Get("seeds").As<Napi::BigUint64Array>();
    const Napi::Array states = rows.Get("states").As<Napi::Array>();
    const size_t mask_words = copy_masks(rows.Get("masks").As<Napi::Array>(), plan.masks);
    const int32_t* row_integers = integers.Data();
    const float* row_reals = reals.Data();
    plan.outputs.clear();
    plan.states.clear();
    int32_t first_id = 0;
    for (size_t i = 0; i < output_tokens.size(); i++, row_integers += num_output_integers, row_reals += num_output_reals) {
        const auto integer = [&](OutputInteger field) { return row_integers[static_cast<size_t>(field)]; };
        const auto real = [&](OutputReal field) { return row_reals[static_cast<size_t>(field)]; };
        OutputRow row{};
        row.kind = static_cast<OutputKind>(integer(OutputInteger::kind));
        row.token = output_tokens[i];
        row.target = integer(OutputInteger::target);
        row.wants_logprobs = integer(OutputInteger::numTop) >= 0;
        row.num_top = integer(OutputInteger::numTop) > 0 ? integer(OutputInteger::numTop) : 0;
        row.first_id = first_id;
        row.num_ids = integer(OutputInteger::numIds);
        first_id += row.num_ids;
        row.sampling.top_k = integer(OutputInteger::topK);
        row.sampling.index = static_cast<uint64_t>(static_cast<uint32_t>(integer(OutputInteger::index)));
        row.sampling.suppress_stops = integer(OutputInteger::suppressStops) != 0;
        if (integer(OutputInteger::state) >= 0) {
            plan.states.push_back(unwrap<SamplerState>(states.Get(static_cast<uint32_t>(integer(OutputInteger::state)))));
            row.sampling.state = plan.states.back().get();
        }
        if (integer(OutputInteger::mask) >= 0) row.sampling.mask = plan.masks.data() + static_cast<size_t>(integer(OutputInteger::mask)) * mask_words;
        row.after_draft = integer(OutputInteger::afterDraft) != 0;
        row.wants_digest = integer(OutputInteger::wantDigest) != 0;
        row.pooling = static_cast<Pooling>(integer(OutputInteger::pooling));
        row.num_pooled = integer(OutputInteger::numPooled);
        row.sampling.temperature = real(OutputReal::temperature);
        row.sampling.top_p = real(OutputReal::topP);
        row.sampling.min_p = real(OutputReal::minP);
        row.sampling.seed = seeds[i];
        plan.outputs.push_back(row);
    }
}

void read_adapters(const Napi::Value& source, StepPlan& plan) {
    plan.adapters.clear();
    plan.sequence_adapters.clear();
    if (source.IsUndefined()) return;
    const Napi::Array handles = source.As<Napi::Object>().Get("handles").As<Napi::Array>();
    for (uint32_t i = 0; i < handles.Length(); i++) plan.adapters.push_back(unwrap<const Adapter>(handles.Get(i)));
    copy_integers(source.As<Napi::Object>(), "ofSequence", plan.sequence_adapters);
}

void read_states(const Napi::Value& source, StateLayout& states) {
    states = {};
    if (source.IsUndefined()) return;
    const Napi::Object plan = source.As<Napi::Object>();
    copy_integers(plan, "slots", states.slots);
    copy_integers(plan, "sources", states.sources);
    copy_integers(plan, "starts", states.starts);
    copy_integers(plan, "ends", states.ends);
    copy_integers(plan, "snapshotStarts", states.snapshot_starts);
    copy_integers(plan, "snapshotPositions", states.snapshot_positions);
    copy_integers(plan, "snapshotSlots", states.snapshot_slots);
}

}  // namespace

/// (backend, program, cache, plan, rows, adapters | undefined) -> Promise<results>. Copies what it needs of plan and rows.
Napi::Value execute_step(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Object source = info[3].As<Napi::Object>();
    const Napi::Object rows = info[4].As<Napi::Object>();
    auto job = std::make_unique<StepJob>(env, unwrap<Program>(info[1]), unwrap<KvCache>(info[2]));
    StepPlan& plan = job->plan();
    plan.num_tokens = source.Get("numTokens").As<Napi::Number>().Int64Value();
    plan.num_sequences = source.Get("numSequences").As<Napi::Number>().Int64Value();
    copy_integers(source, "tokenIds", plan.token_ids, plan.num_tokens);
    copy_integers(source, "positions", plan.positions, plan.num_tokens);
    plan.token_types.clear();
    if (source.Has("tokenTypes")) copy_integers(source, "tokenTypes", plan.token_types, plan.num_tokens);
    copy_integers(source, "slots", plan.slots, plan.num_tokens);
    copy_integers(source, "queryStarts", plan.query_starts, plan.num_sequences + 1);
    copy_integers(source, "contextLengths", plan.context_lengths, plan.num_sequences);
    copy_integers(source, "blockTableStarts", plan.block_table_starts, plan.num_sequences + 1);
    copy_integers(source, "blockTables", plan.block_tables, plan.block_table_starts.back());
    copy_integers(rows, "logprobIds", plan.logprob_ids);
    std::vector<int32_t>& output_tokens = job->output_tokens();
    copy_integers(source, "outputTokens", output_tokens, rows.Get("count").As<Napi::Number>().Int64Value());
    read_outputs(rows, output_tokens, plan);
    read_adapters(info[5], plan);
    read_states(source.Get("states"), plan.recurrent);
    copy_floats(source, "received", plan.received);
    plan.last_seen.clear();
    if (source.Has("lastSeen")) copy_integers(source, "lastSeen", plan.last_seen, plan.num_tokens);
    plan.axes.clear();
    if (source.Has("axes")) copy_integers(source, "axes", plan.axes, plan.num_tokens * kRopeAxes);
    plan.given_tokens.clear();
    plan.given_rows.clear();
    plan.given_added.clear();
    if (source.Has("given")) {
        const Napi::Object given = source.Get("given").As<Napi::Object>();
        copy_integers(given, "tokens", plan.given_tokens);
        copy_floats(given, "rows", plan.given_rows);
        copy_floats(given, "added", plan.given_added);
    }
    plan.wants_logits = source.Get("wantLogits").ToBoolean();
    plan.wants_op_times = source.Get("wantOpTimes").ToBoolean();
    plan.without_sent = source.Get("withoutSent").ToBoolean();
    plan.part = 0;
    plan.num_parts = 1;
    if (source.Has("part")) {
        const Napi::Object part = source.Get("part").As<Napi::Object>();
        plan.part = part.Get("index").As<Napi::Number>().Int64Value();
        plan.num_parts = part.Get("count").As<Napi::Number>().Int64Value();
    }
    const Napi::Value promise = job->promise();
    unwrap<BackendThread>(info[0])->submit(env, std::move(job));
    return promise;
}

}  // namespace octavo
