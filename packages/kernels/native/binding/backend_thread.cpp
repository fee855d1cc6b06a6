#include "backend_thread.h"

#include <stdexcept>
#include <utility>

#include "../core/platform.h"

namespace octavo {

BackendThread::BackendThread(int num_threads, std::vector<int> cores)
    : cores_(std::move(cores)), pool_(num_threads, cores_), executor_(pool_) {}

std::shared_ptr<BackendThread> BackendThread::start(napi_env env, int num_threads, std::vector<int> cores) {
    std::shared_ptr<BackendThread> self(new BackendThread(num_threads, std::move(cores)));
    // The thread-safe function owns a reference until Node has closed it, which is after the thread's last call.
    auto* owned = new std::shared_ptr<BackendThread>(self);
    napi_value name = nullptr;
    napi_create_string_utf8(env, "octavo:kernels", NAPI_AUTO_LENGTH, &name);
    if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, owned, on_finalize, self.get(), on_settled,
                                        &self->settled_) != napi_ok) {
        delete owned;
        throw std::runtime_error("cannot create a thread-safe function");
    }
    napi_unref_threadsafe_function(env, self->settled_);
    // Added after the function's own hook, so that it runs before it.
    napi_add_env_cleanup_hook(env, on_teardown, self.get());
    self->thread_ = std::thread([raw = self.get()] { raw->work(); });
    return self;
}

BackendThread::~BackendThread() {
    if (thread_.joinable()) thread_.join();
}

void BackendThread::submit(napi_env env, std::unique_ptr<Job> job) {
    if (open_jobs_++ == 0) napi_ref_threadsafe_function(env, settled_);
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        queue_.push_back(std::move(job));
    }
    wake_.notify_one();
}

void BackendThread::close() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        closing_ = true;
    }
    wake_.notify_one();
}

void BackendThread::work() {
    run_on_cores(cores_);
    for (;;) {
        std::unique_ptr<Job> job;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            wake_.wait(lock, [&] { return closing_ || !queue_.empty(); });
            if (queue_.empty()) break;
            job = std::move(queue_.front());
            queue_.pop_front();
        }
        if (!cancelled_.load()) job->run(*this);
        Job* settled = job.release();
        if (napi_call_threadsafe_function(settled_, settled, napi_tsfn_nonblocking) != napi_ok) {
            settled->abandon();
            delete settled;
        }
    }
    napi_release_threadsafe_function(settled_, napi_tsfn_release);
}

void BackendThread::on_settled(napi_env env, napi_value, void* context, void* data) {
    const std::unique_ptr<Job> job(static_cast<Job*>(data));
    if (env == nullptr) {
        job->abandon();
        return;
    }
    auto* self = static_cast<BackendThread*>(context);
    if (--self->open_jobs_ == 0) napi_unref_threadsafe_function(env, self->settled_);
    try {
        job->settle(env);
    } catch (const std::exception&) {
        // The environment is being terminated: nobody is left to await the promise.
        job->abandon();
    }
}

void BackendThread::on_finalize(napi_env env, void* data, void*) {
    auto* owned = static_cast<std::shared_ptr<BackendThread>*>(data);
    BackendThread& self = **owned;
    if (!self.torn_down_) napi_remove_env_cleanup_hook(env, on_teardown, &self);
    if (self.thread_.joinable()) self.thread_.join();
    delete owned;
}

void BackendThread::on_teardown(void* data) {
    auto* self = static_cast<BackendThread*>(data);
    self->torn_down_ = true;
    self->cancelled_.store(true);
    self->close();
    self->thread_.join();
}

}  // namespace octavo
