#include "packed_binding.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "../core/mapped_file.h"
#include "../matrix/packed_form.h"
#include "promise_job.h"

namespace octavo {

namespace {

/// What a thread maps at a time.
constexpr size_t kPopulateBytes = size_t{4} << 20;

std::string checksum_text(const Matrix& matrix, ThreadPool& pool) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(packed_checksum(matrix.packed(), matrix.bytes(), pool)));
    return text;
}

class ChecksumJob final : public PromiseJob {
public:
    ChecksumJob(Napi::Env env, std::shared_ptr<Matrix> matrix) : PromiseJob(env), matrix_(std::move(matrix)) {}

    void run(BackendThread& backend) noexcept override { checksum_ = checksum_text(*matrix_, backend.pool()); }

private:
    Napi::Value outcome(Napi::Env env) override { return Napi::String::New(env, checksum_); }

    std::shared_ptr<Matrix> matrix_;
    std::string checksum_;
};

class MapJob final : public PromiseJob {
public:
    MapJob(Napi::Env env, const Napi::Object& spec) : PromiseJob(env) {
        form_.type = static_cast<WeightType>(spec.Get("type").As<Napi::Number>().Int32Value());
        form_.rows = spec.Get("rows").As<Napi::Number>().Int64Value();
        form_.cols = spec.Get("cols").As<Napi::Number>().Int64Value();
        form_.group = spec.Get("groupSize").As<Napi::Number>().Int64Value();
        form_.zeros = spec.Get("hasZeros").As<Napi::Boolean>().Value();
        file_ = unwrap<MappedFile>(spec.Get("file"));
        offset_ = static_cast<size_t>(spec.Get("offset").As<Napi::Number>().Int64Value());
        expected_ = spec.Get("checksum").As<Napi::String>().Utf8Value();
    }

    void run(BackendThread& backend) noexcept override {
        try {
            const size_t bytes = packed_bytes(form_);
            file_->keep(offset_, bytes);
            std::shared_ptr<Matrix> matrix = map_packed(form_, file_, offset_);
            if (expected_.empty()) {
                populate(bytes, backend.pool());
            } else if (checksum_text(*matrix, backend.pool()) != expected_) {
                return;
            }
            matrix_ = std::move(matrix);
        } catch (const std::exception& error) {
            failure_ = {"artifact_invalid", error.what()};
        }
    }

private:
    Napi::Value outcome(Napi::Env env) override {
        if (matrix_ == nullptr) return env.Undefined();
        const size_t bytes = matrix_->bytes();
        return wrap_sized(env, std::move(matrix_), bytes);
    }
    void populate(size_t bytes, ThreadPool& pool) const {
        const int64_t pieces = static_cast<int64_t>((bytes + kPopulateBytes - 1) / kPopulateBytes);
        pool.parallel_for(pieces, 1, [&](int64_t begin, int64_t end, int) {
            const size_t first = static_cast<size_t>(begin) * kPopulateBytes;
            file_->populate(offset_ + first, std::min(static_cast<size_t>(end) * kPopulateBytes, bytes) - first);
        });
    }

    PackedForm form_{};
    std::shared_ptr<MappedFile> file_;
    size_t offset_ = 0;
    /// Empty where the bytes are known to be sound.
    std::string expected_;
    std::shared_ptr<Matrix> matrix_;
};

}  // namespace

/// (matrix) -> Uint8Array over the packed bytes, or undefined for a matrix that is more than its bytes. The array keeps them alive.
Napi::Value packed_bytes_of(const Napi::CallbackInfo& info) {
    using Holder = std::shared_ptr<Matrix>;
    const std::shared_ptr<Matrix> matrix = unwrap<Matrix>(info[0]);
    if (matrix->packed() == nullptr) return info.Env().Undefined();
    const Napi::ArrayBuffer memory = Napi::ArrayBuffer::New(
        info.Env(), const_cast<uint8_t*>(matrix->packed()), matrix->bytes(),
        [](Napi::Env, void*, Holder* holder) { delete holder; }, new Holder(matrix));
    return Napi::Uint8Array::New(info.Env(), matrix->bytes(), memory, 0);
}

/// (backend, matrix) -> Promise<sixteen hexadecimal digits>
Napi::Value checksum_matrix(const Napi::CallbackInfo& info) {
    return submit(info, info[0], std::make_unique<ChecksumJob>(info.Env(), unwrap<Matrix>(info[1])));
}

/// (backend, spec) -> Promise<{ handle, byteLength } | undefined when the bytes have another checksum>; an empty one is not looked at
Napi::Value map_matrix(const Napi::CallbackInfo& info) {
    return submit(info, info[0], std::make_unique<MapJob>(info.Env(), info[1].As<Napi::Object>()));
}

}  // namespace octavo
