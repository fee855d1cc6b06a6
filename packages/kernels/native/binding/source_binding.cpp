#include "source_binding.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../core/half.h"
#include "../core/mapped_file.h"
#include "../matrix/matrix.h"
#include "../program/program.h"
#include "promise_job.h"

namespace octavo {

namespace {

/// What keeps the bytes of a tensor alive, and where they are.
struct Bytes {
    const uint8_t* data = nullptr;
    size_t size = 0;
    std::shared_ptr<MappedFile> file;
    size_t offset = 0;
    Napi::ObjectReference memory;
};

Bytes read_bytes(const Napi::Object& source) {
    Bytes bytes;
    const Napi::Value file = source.Get("file");
    if (!file.IsUndefined()) {
        bytes.file = unwrap<MappedFile>(file);
        bytes.offset = static_cast<size_t>(source.Get("offset").As<Napi::Number>().Int64Value());
        bytes.size = static_cast<size_t>(source.Get("byteLength").As<Napi::Number>().Int64Value());
        bytes.data = bytes.file->data() + bytes.offset;
        return bytes;
    }
    const Napi::Uint8Array array = source.Get("data").As<Napi::Uint8Array>();
    bytes.data = array.Data();
    bytes.size = array.ByteLength();
    bytes.memory = Napi::Persistent(array.As<Napi::Object>());
    return bytes;
}

std::unique_ptr<Matrix> make_matrix(Packing packing, const std::vector<MatrixSource>& sources, ThreadPool& pool) {
    if (packing == Packing::in_place) return Matrix::in_place_or_packed(sources, pool);
    return packing == Packing::later ? Matrix::pack_later(sources, pool) : Matrix::pack(sources, pool);
}

class PackJob final : public PromiseJob {
public:
    PackJob(Napi::Env env, Packing packing) : PromiseJob(env), packing_(packing) {}

    void add(const Napi::Object& source) {
        MatrixSource matrix{};
        matrix.type = static_cast<WeightType>(source.Get("type").As<Napi::Number>().Int32Value());
        matrix.rows = source.Get("rows").As<Napi::Number>().Int64Value();
        matrix.cols = source.Get("cols").As<Napi::Number>().Int64Value();
        matrix.group = source.Get("groupSize").As<Napi::Number>().Int64Value();
        matrix.name = source.Get("name").As<Napi::String>().Utf8Value();
        matrix.values = keep(source.Get("bytes"));
        matrix.file = kept_.back().file;
        matrix.scales = keep(source.Get("scales"));
        matrix.zeros = keep(source.Get("zeros"));
        const Napi::Value order = source.Get("columnOrder");
        if (!order.IsUndefined()) {
            const Napi::Int32Array columns = order.As<Napi::Int32Array>();
            matrix.column_order.assign(columns.Data(), columns.Data() + columns.ElementLength());
        }
        matrix.scale_rows = source.Get("scaleRows").As<Napi::Number>().Int64Value();
        const Napi::Value table = source.Get("table");
        if (!table.IsUndefined()) {
            const Napi::Float32Array values = table.As<Napi::Float32Array>();
            matrix.table.assign(values.Data(), values.Data() + values.ElementLength());
        }
        sources_.push_back(std::move(matrix));
    }

    void run(BackendThread& backend) noexcept override {
        try {
            matrix_ = make_matrix(packing_, sources_, backend.pool());
            for (const Bytes& bytes : kept_) {
                if (bytes.file && !matrix_->reads_files()) bytes.file->release(bytes.offset, bytes.size);
            }
        } catch (const std::bad_alloc&) {
            failure_ = {"out_of_memory", "not enough memory to repack " + sources_.front().name};
        } catch (const std::exception& error) {
            failure_ = {"artifact_invalid", error.what()};
        }
    }

    void abandon() override {
        for (Bytes& bytes : kept_) bytes.memory.SuppressDestruct();
    }

private:
    Napi::Value outcome(Napi::Env env) override {
        const size_t bytes = matrix_->bytes();
        return wrap_sized(env, std::move(matrix_), bytes);
    }

    const uint8_t* keep(const Napi::Value& source) {
        if (source.IsUndefined()) return nullptr;
        kept_.push_back(read_bytes(source.As<Napi::Object>()));
        return kept_.back().data;
    }

    Packing packing_;
    std::vector<MatrixSource> sources_;
    std::vector<Bytes> kept_;
    std::shared_ptr<Matrix> matrix_;
};

/// Packed between two looks at the clock.
constexpr size_t kPieceBytes = size_t{8} << 20;

class PackMoreJob final : public PromiseJob {
public:
    PackMoreJob(Napi::Env env, double milliseconds) : PromiseJob(env), milliseconds_(milliseconds) {}

    void add(const Napi::Value& matrix) { matrices_.push_back(unwrap<Matrix>(matrix)); }

    void run(BackendThread& backend) noexcept override {
        try {
            const auto start = std::chrono::steady_clock::now();
            while (num_packed_ < matrices_.size() && !backend.cancelled().load()) {
                if (matrices_[num_packed_]->pack_more(kPieceBytes, backend.pool()) == 0) ++num_packed_;
                const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
                if (spent.count() > milliseconds_) return;
            }
        } catch (const std::bad_alloc&) {
            failure_ = {"out_of_memory", "not enough memory to repack the weights"};
        } catch (const std::exception& error) {
            failure_ = {"artifact_invalid", error.what()};
        }
    }

private:
    Napi::Value outcome(Napi::Env env) override { return Napi::Number::New(env, static_cast<double>(num_packed_)); }

    std::vector<std::shared_ptr<Matrix>> matrices_;
    double milliseconds_;
    size_t num_packed_ = 0;
};

void append_floats(WeightType type, const uint8_t* data, size_t length, Vector& out) {
    for (size_t i = 0; i < length; i++) {
        if (type == WeightType::f32) {
            float value;
            std::memcpy(&value, data + 4 * i, sizeof value);
            out.push_back(value);
            continue;
        }
        uint16_t half;
        std::memcpy(&half, data + 2 * i, sizeof half);
        out.push_back(type == WeightType::f16 ? f16_to_f32(half) : bf16_to_f32(half));
    }
}

}  // namespace

/// (path) -> { handle, byteLength }
Napi::Value map_file(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    try {
        auto file = std::make_shared<MappedFile>(info[0].As<Napi::String>().Utf8Value());
        const size_t bytes = file->size();
        return wrap_sized(env, std::move(file), bytes);
    } catch (const Napi::Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Failure{"artifact_invalid", error.what()}.to_error(env);
    }
}

/// (backend, sources, Packing) -> Promise<{ handle, byteLength }>
Napi::Value create_matrix(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Array sources = info[1].As<Napi::Array>();
    auto job = std::make_unique<PackJob>(env, static_cast<Packing>(info[2].As<Napi::Number>().Int32Value()));
    for (uint32_t i = 0; i < sources.Length(); i++) job->add(sources.Get(i).As<Napi::Object>());
    return submit(info, info[0], std::move(job));
}

/// (backend, matrices, milliseconds) -> Promise<how many of them, from the first on, are all packed>
Napi::Value pack_more(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Array matrices = info[1].As<Napi::Array>();
    auto job = std::make_unique<PackMoreJob>(env, info[2].As<Napi::Number>().DoubleValue());
    for (uint32_t i = 0; i < matrices.Length(); i++) job->add(matrices.Get(i));
    return submit(info, info[0], std::move(job));
}

/// (sources) -> handle. Throws `artifact_invalid` naming the tensor when a value is not finite.
Napi::Value create_vector(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Array sources = info[0].As<Napi::Array>();
    auto vector = std::make_shared<Vector>();
    for (uint32_t i = 0; i < sources.Length(); i++) {
        const Napi::Object source = sources.Get(i).As<Napi::Object>();
        const Bytes bytes = read_bytes(source.Get("bytes").As<Napi::Object>());
        const auto type = static_cast<WeightType>(source.Get("type").As<Napi::Number>().Int32Value());
        const size_t begin = vector->size();
        append_floats(type, bytes.data, static_cast<size_t>(source.Get("length").As<Napi::Number>().Int64Value()), *vector);
        for (size_t k = begin; k < vector->size(); k++) {
            if (f32_is_finite((*vector)[k])) continue;
            const std::string name = source.Get("name").As<Napi::String>().Utf8Value();
            throw Failure{"artifact_invalid",
                          "tensor " + name + " has a value that is not finite at index " + std::to_string(k - begin)}
                .to_error(env);
        }
    }
    return wrap<const Vector>(env, std::move(vector));
}

}  // namespace octavo
