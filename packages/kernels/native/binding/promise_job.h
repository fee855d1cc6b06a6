#pragma once
#include "backend_thread.h"
#include "failure.h"
#include "handles.h"

namespace octavo {

/// A job whose outcome is one value, or a failure.
class PromiseJob : public Job {
public:
    explicit PromiseJob(Napi::Env env) : deferred_(Napi::Promise::Deferred::New(env)) {}

    void settle(napi_env raw_env) final {
        const Napi::Env env(raw_env);
        const Napi::HandleScope scope(env);
        if (failure_.happened()) {
            deferred_.Reject(failure_.to_error(env).Value());
        } else {
            deferred_.Resolve(outcome(env));
        }
    }
    void abandon() override {}

    Napi::Value promise() const { return deferred_.Promise(); }

protected:
    /// On the JavaScript thread, when nothing failed.
    virtual Napi::Value outcome(Napi::Env env) = 0;

    Failure failure_;

private:
    Napi::Promise::Deferred deferred_;
};

/// To the backend of that handle; returns the promise of the job's outcome.
inline Napi::Value submit(const Napi::CallbackInfo& info, const Napi::Value& backend, std::unique_ptr<PromiseJob> job) {
    const Napi::Value promise = job->promise();
    unwrap<BackendThread>(backend)->submit(info.Env(), std::move(job));
    return promise;
}

}  // namespace octavo
