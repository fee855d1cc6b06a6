#include "program_binding.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "../program/kv_cache.h"
#include "../program/program.h"
#include "../sampling/sampler_state.h"
#include "failure.h"
#include "handles.h"

namespace octavo {

namespace {

int64_t integer(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::Number>().Int64Value(); }

int64_t integer_or(const Napi::Object& object, const char* key, int64_t otherwise) {
    return object.Get(key).IsUndefined() ? otherwise : integer(object, key);
}

float real(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::Number>().FloatValue(); }

float real_or(const Napi::Object& object, const char* key, float otherwise) {
    return object.Get(key).IsUndefined() ? otherwise : real(object, key);
}

std::string text(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::String>().Utf8Value(); }

Activation activation(const Napi::Object& op) {
    const std::string name = text(op, "activation");
    // As many commas stand before a name as enumerators before its own.
    const std::string names = ", " + std::string(kActivationNames) + ",";
    const auto at = static_cast<std::ptrdiff_t>(names.find(", " + name + ","));
    return static_cast<Activation>(std::count(names.begin(), names.begin() + at, ','));
}

std::vector<int32_t> integers(const Napi::Value& value) {
    const Napi::Int32Array array = value.As<Napi::Int32Array>();
    return {array.Data(), array.Data() + array.ElementLength()};
}

BufferSpan span(const Napi::Object& object, const char* key) {
    const Napi::Value value = object.Get(key);
    if (value.IsUndefined()) return {-1, 0, 0};
    const Napi::Object reference = value.As<Napi::Object>();
    return {static_cast<int32_t>(integer(reference, "buffer")), integer(reference, "column"), integer(reference, "width")};
}

/// Builds the ops of a program; equal rope specifications share one table.
class ProgramReader {
public:
    Op read(const Napi::Object& op) {
        const std::string name = text(op, "op");
        if (name == "embedding") {
            return EmbeddingOp{unwrap<Matrix>(op.Get("weight")), span(op, "out"), real_or(op, "scale", 1.0f), embedding_index(op),
                               static_cast<int32_t>(integer_or(op, "offset", 0)), op.Has("takesGiven")};
        }
        if (name == "add_given") return AddGivenOp{span(op, "on"), integer(op, "index")};
        if (name == "rms_norm") {
            const BufferSpan in = span(op, "in");
            auto weight = unwrap<const Vector>(op.Get("weight"));
            const int64_t group = integer_or(op, "groupSize", in.width);
            const int64_t weight_stride = static_cast<int64_t>(weight->size()) > group ? group : 0;
            return RmsNormOp{in, span(op, "out"), span(op, "residual"), std::move(weight), real(op, "eps"),
                             real_or(op, "weightOffset", 0.0f), group, weight_stride};
        }
        if (name == "layer_norm") {
            return LayerNormOp{span(op, "in"), span(op, "out"), span(op, "residual"), unwrap<const Vector>(op.Get("weight")),
                               unwrap_or_null<const Vector>(op.Get("bias")), real(op, "eps")};
        }
        if (name == "linear") {
            return LinearOp{span(op, "in"), span(op, "out"), unwrap<Matrix>(op.Get("weight")),
                            unwrap_or_null<const Vector>(op.Get("bias")), static_cast<int32_t>(integer_or(op, "site", -1))};
        }
        if (name == "head_linear") {
            HeadLinearOp read{span(op, "in"), span(op, "out"), {}, integer_or(op, "passed", 0)};
            const Napi::Array weights = op.Get("weights").As<Napi::Array>();
            for (uint32_t i = 0; i < weights.Length(); i++) read.weights.push_back(unwrap<Matrix>(weights.Get(i)));
            return read;
        }
        if (name == "rope") return RopeOp{span(op, "on"), integer(op, "headDim"), table(op.Get("rope").As<Napi::Object>())};
        if (name == "attention") {
            AttentionSpec spec{integer(op, "numHeads"), integer(op, "numKvHeads"),        integer(op, "headDim"),
                               real(op, "scale"),       real_or(op, "softCap", 0.0f), integer_or(op, "slidingWindow", 0)};
            spec.value_dim = integer_or(op, "valueDim", 0);
            spec.chunk = integer_or(op, "chunk", 0);
            spec.is_causal = op.Has("isCausal");
            return AttentionOp{span(op, "q"),
                               span(op, "k"),
                               span(op, "v"),
                               span(op, "out"),
                               integer(op, "layer"),
                               spec,
                               unwrap_or_null<const Vector>(op.Get("sinks")),
                               integer_or(op, "lookAhead", 0)};
        }
        if (name == "gated_activation") {
            return GatedActivationOp{span(op, "in"), span(op, "out"), activation(op)};
        }
        if (name == "activation") return ActivationOp{span(op, "on"), activation(op)};
        if (name == "experts") return experts(op);
        if (name == "sigmoid_gate") return SigmoidGateOp{span(op, "in"), span(op, "on")};
        if (name == "gate") return GateOp{span(op, "in"), span(op, "on"), activation(op)};
        if (name == "split") return SplitOp{span(op, "in"), span(op, "first"), span(op, "second"), integer(op, "run")};
        if (name == "convolution") return convolution(op);
        if (name == "gated_delta_rule" || name == "state_space") return recurrence(op, name == "gated_delta_rule");
        if (name == "add") return AddOp{span(op, "in"), span(op, "out")};
        if (name == "scale") return ScaleOp{span(op, "on"), real(op, "factor"), unwrap_or_null<const Vector>(op.Get("by"))};
        if (name == "clamp") {
            const float limit = real(op, "limit");
            return ClampOp{span(op, "on"), real_or(op, "least", -limit), limit};
        }
        if (name == "round_e4m3") {
            const BufferSpan in = span(op, "in");
            return RoundE4m3Op{in, span(op, "out"), integer_or(op, "groupSize", in.width)};
        }
        if (name == "exchange") {
            const bool is_first = text(op, "from") == "first";
            return ExchangeOp{span(op, "on"), is_first ? ExchangeKind::first : ExchangeKind::parts};
        }
        if (name == "receive") return ReceiveOp{span(op, "out")};
        if (name == "send") return SendOp{span(op, "in")};
        if (name == "gather") return GatherOp{span(op, "in"), span(op, "out")};
        throw Napi::Error::New(op.Env(), "the kernels know no op " + name);
    }

    std::vector<RopeSpec> take_ropes() { return std::move(ropes_); }

private:
    static EmbeddingIndex embedding_index(const Napi::Object& op) {
        if (op.Get("of").IsUndefined()) return EmbeddingIndex::token;
        return text(op, "of") == "position" ? EmbeddingIndex::position : EmbeddingIndex::type;
    }

    static ExpertsOp experts(const Napi::Object& op) {
        RoutingRule rule;
        rule.top_k = integer(op, "topK");
        rule.among_chosen = text(op, "softmaxOver") == "chosen";
        rule.is_sigmoid = !op.Get("scoring").IsUndefined();
        rule.scale = real_or(op, "weightScale", 1.0f);
        if (op.Get("groups").IsObject()) {
            const Napi::Object groups = op.Get("groups").As<Napi::Object>();
            rule.groups = integer(groups, "count");
            rule.top_groups = integer(groups, "chosen");
            rule.groups_by_two = text(groups, "by") == "two_best";
        }
        ExpertsOp read{span(op, "in"), span(op, "scores"), span(op, "out"), {}, rule, unwrap_or_null<const Vector>(op.Get("selectionBias")),
                       unwrap_or_null<const Vector>(op.Get("expertScales")), activation(op), !op.Get("isGated").IsUndefined(), !op.Get("isSplit").IsUndefined(),
                       !op.Get("weighsInput").IsUndefined()};
        const Napi::Array list = op.Get("experts").As<Napi::Array>();
        for (uint32_t i = 0; i < list.Length(); i++) {
            const Napi::Object expert = list.Get(i).As<Napi::Object>();
            read.experts.push_back({unwrap<Matrix>(expert.Get("gate")), unwrap_or_null<Matrix>(expert.Get("up")),
                                    unwrap<Matrix>(expert.Get("down")), unwrap_or_null<const Vector>(expert.Get("gateBias")),
                                    unwrap_or_null<const Vector>(expert.Get("upBias")),
                                    unwrap_or_null<const Vector>(expert.Get("downBias"))});
        }
        return read;
    }

    static ConvolutionOp convolution(const Napi::Object& op) {
        const BufferSpan in = span(op, "in");
        const auto given = unwrap<const Vector>(op.Get("weight"));
        const int64_t taps = static_cast<int64_t>(given->size()) / in.width;
        auto weight = std::make_shared<Vector>(given->size());
        for (int64_t channel = 0; channel < in.width; channel++) {
            for (int64_t tap = 0; tap < taps; tap++) {
                (*weight)[static_cast<size_t>(tap * in.width + channel)] = (*given)[static_cast<size_t>(channel * taps + tap)];
            }
        }
        const ConvolutionSpec spec{integer(op, "state"), in.width, taps, nullptr, nullptr, !op.Get("activation").IsUndefined()};
        return {in, span(op, "out"), spec, std::move(weight), unwrap_or_null<const Vector>(op.Get("bias"))};
    }

    static RecurrenceOp recurrence(const Napi::Object& op, bool is_delta) {
        const auto given = unwrap<const Vector>(op.Get("decayRate"));
        auto rates = std::make_shared<Vector>(*given);
        const bool is_log = text(op, "rateForm") == "log";
        for (float& rate : *rates) rate = is_log ? std::exp(rate) : -rate;
        RecurrenceSpec spec{};
        spec.state = integer(op, "state");
        spec.num_heads = integer(op, "numHeads");
        spec.num_key_heads = integer(op, "numKeyHeads");
        spec.key_dim = integer(op, "keyDim");
        spec.value_dim = integer(op, "valueDim");
        spec.is_delta = is_delta;
        spec.is_tiled = is_delta && text(op, "keyHeads") == "tiled";
        spec.least_step = real_or(op, "leastStep", 0.0f);
        spec.most_step = real_or(op, "mostStep", std::numeric_limits<float>::infinity());
        return {span(op, is_delta ? "q" : "c"),
                span(op, is_delta ? "k" : "b"),
                span(op, is_delta ? "v" : "x"),
                span(op, is_delta ? "decay" : "step"),
                span(op, is_delta ? "strength" : "step"),
                span(op, "out"),
                spec,
                std::move(rates),
                unwrap<const Vector>(op.Get("stepBias")),
                is_delta ? nullptr : unwrap<const Vector>(op.Get("skip"))};
    }

    int32_t table(const Napi::Object& rope) {
        const Napi::Float32Array frequencies = rope.Get("inverseFrequencies").As<Napi::Float32Array>();
        RopeSpec spec{{frequencies.Data(), frequencies.Data() + frequencies.ElementLength()},
                      real(rope, "attentionFactor"),
                      text(rope, "layout") == "neox" ? RopeLayout::neox : RopeLayout::interleaved,
                      0.0f,
                      1};
        if (!rope.Get("growth").IsUndefined()) {
            const Napi::Object growth = rope.Get("growth").As<Napi::Object>();
            spec.growth_beta = real(growth, "beta");
            spec.growth_every = integer(growth, "every");
            spec.growth_offset = integer_or(growth, "offset", 0);
        }
        if (!rope.Get("axes").IsUndefined()) {
            const Napi::Uint8Array axes = rope.Get("axes").As<Napi::Uint8Array>();
            spec.axes.assign(axes.Data(), axes.Data() + axes.ElementLength());
        }
        const auto known = std::find(ropes_.begin(), ropes_.end(), spec);
        if (known != ropes_.end()) return static_cast<int32_t>(known - ropes_.begin());
        ropes_.push_back(std::move(spec));
        return static_cast<int32_t>(ropes_.size() - 1);
    }

    std::vector<RopeSpec> ropes_;
};

}  // namespace

/// (spec, rank group | undefined, rank) -> handle
Napi::Value compile_program(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Object spec = info[0].As<Napi::Object>();
    const Napi::Array op_list = spec.Get("ops").As<Napi::Array>();
    ProgramReader reader;
    std::vector<Op> ops;
    for (uint32_t i = 0; i < op_list.Length(); i++) ops.push_back(reader.read(op_list.Get(i).As<Napi::Object>()));
    const Napi::Array width_list = spec.Get("buffers").As<Napi::Array>();
    std::vector<int64_t> widths;
    for (uint32_t i = 0; i < width_list.Length(); i++) widths.push_back(width_list.Get(i).As<Napi::Number>().Int64Value());
    OutputHead output_head{nullptr, nullptr, 1.0f, 0.0f};
    if (const Napi::Value given = spec.Get("head"); !given.IsUndefined()) {
        const Napi::Object head = given.As<Napi::Object>();
        output_head = {unwrap<Matrix>(head.Get("weight")), unwrap_or_null<const Vector>(head.Get("bias")),
                       real_or(head, "scale", 1.0f), real_or(head, "softCap", 0.0f), integer_or(head, "allRows", 0)};
    }
    Rank rank;
    if (const Napi::Value given = info[1]; !given.IsUndefined()) {
        rank = Rank(unwrap<RankGroup>(given), info[2].As<Napi::Number>().Int64Value());
    }
    try {
        return wrap(env, std::make_shared<Program>(widths, std::move(ops), reader.take_ropes(), span(spec, "hidden"),
                                                   std::move(output_head), integer(spec, "maxTokens"), std::move(rank)));
    } catch (const std::bad_alloc&) {
        throw Failure{"out_of_memory", "not enough address space for the program's activation buffers; lower maxTokens"}
            .to_error(env);
    }
}

/// (ranks, widest exchanged rows) -> handle
Napi::Value create_rank_group(const Napi::CallbackInfo& info) {
    const auto number = [&](size_t index) { return info[index].As<Napi::Number>().Int64Value(); };
    try {
        return wrap(info.Env(), std::make_shared<RankGroup>(number(0), number(1)));
    } catch (const std::bad_alloc&) {
        throw Failure{"out_of_memory", "not enough memory for what ranks exchange"}.to_error(info.Env());
    }
}

/// (rank group): ranks that wait for one that will not come leave their step
void fail_rank_group(const Napi::CallbackInfo& info) { unwrap<RankGroup>(info[0])->fail(); }

/// (rank group): after a failed step, once all ranks have left it
void reset_rank_group(const Napi::CallbackInfo& info) { unwrap<RankGroup>(info[0])->reset(); }

/// (spec) -> handle
Napi::Value create_kv_cache(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Object spec = info[0].As<Napi::Object>();
    const Napi::Array layers = spec.Get("layers").As<Napi::Array>();
    std::vector<KvShape> shapes;
    for (uint32_t i = 0; i < layers.Length(); i++) {
        const Napi::Object layer = layers.Get(i).As<Napi::Object>();
        shapes.push_back({static_cast<KvDtype>(integer(spec, "dtype")), integer(spec, "numBlocks"), integer(spec, "blockSize"),
                          integer(layer, "numKvHeads"), integer(layer, "headDim"), !layer.Get("isLatent").IsUndefined()});
    }
    StateCacheShape states;
    if (const Napi::Value given = spec.Get("states"); !given.IsUndefined()) {
        const Napi::Object source = given.As<Napi::Object>();
        states.num_slots = integer(source, "numSlots");
        states.max_draft = integer(source, "maxDraftTokens");
        const Napi::Array widths = source.Get("widths").As<Napi::Array>();
        for (uint32_t i = 0; i < widths.Length(); i++) states.widths.push_back(widths.Get(i).As<Napi::Number>().Int64Value());
    }
    try {
        return wrap(env, std::make_shared<KvCache>(std::move(shapes), std::move(states)));
    } catch (const std::bad_alloc&) {
        throw Failure{"out_of_memory", "not enough memory for a KV cache of this size; lower the number of blocks"}
            .to_error(env);
    }
}

/// (spec) -> handle
Napi::Value create_sampler_state(const Napi::CallbackInfo& info) {
    const Napi::Object spec = info[0].As<Napi::Object>();
    SamplerState::Spec state;
    state.prompt_tokens = integers(spec.Get("promptTokens"));
    state.output_tokens = integers(spec.Get("outputTokens"));
    state.repetition_penalty = real(spec, "repetitionPenalty");
    state.frequency_penalty = real(spec, "frequencyPenalty");
    state.presence_penalty = real(spec, "presencePenalty");
    if (const Napi::Value bias = spec.Get("logitBias"); !bias.IsUndefined()) {
        const std::vector<int32_t> ids = integers(bias.As<Napi::Object>().Get("ids"));
        const Napi::Float32Array values = bias.As<Napi::Object>().Get("values").As<Napi::Float32Array>();
        for (size_t i = 0; i < ids.size(); i++) state.logit_bias.emplace_back(ids[i], values[i]);
    }
    if (const Napi::Value allowed = spec.Get("allowedTokens"); !allowed.IsUndefined()) {
        state.has_allowed = true;
        state.allowed_tokens = integers(allowed);
        std::sort(state.allowed_tokens.begin(), state.allowed_tokens.end());
        const auto end = std::unique(state.allowed_tokens.begin(), state.allowed_tokens.end());
        state.allowed_tokens.erase(end, state.allowed_tokens.end());
    }
    if (const Napi::Value words = spec.Get("badWords"); !words.IsUndefined()) {
        const Napi::Array list = words.As<Napi::Array>();
        for (uint32_t i = 0; i < list.Length(); i++) state.bad_words.push_back(integers(list.Get(i)));
    }
    if (const Napi::Value stops = spec.Get("stopTokens"); !stops.IsUndefined()) state.stop_tokens = integers(stops);
    return wrap(info.Env(), std::make_shared<SamplerState>(std::move(state)));
}

}  // namespace octavo
