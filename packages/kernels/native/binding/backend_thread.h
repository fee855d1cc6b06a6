#pragma once
#include <node_api.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../core/thread_pool.h"
#include "../program/executor.h"

namespace octavo {

class BackendThread;

/// Work for the backend's thread, whose outcome JavaScript awaits.
class Job {
public:
    virtual ~Job() = default;
    /// On the backend's thread. Keeps failures for `settle`.
    virtual void run(BackendThread& backend) noexcept = 0;
    /// On the JavaScript thread: resolves or rejects the promise.
    virtual void settle(napi_env env) = 0;
    /// Instead of `settle` when the environment is going away and no JavaScript may be touched.
    virtual void abandon() = 0;
};

/// One thread that runs jobs in the order in which they came, and the pool that it leads. The event loop never waits for
/// it, except once: when an environment is torn down, for the op that is running.
class BackendThread {
public:
    /// `cores` are those to stay on; none means all. Throws std::runtime_error when Node refuses the thread-safe function.
    static std::shared_ptr<BackendThread> start(napi_env env, int num_threads, std::vector<int> cores);

    ~BackendThread();

    // JavaScript thread only.
    void submit(napi_env env, std::unique_ptr<Job> job);
    /// Jobs already submitted still run; the thread ends after them.
    void close();

    ThreadPool& pool() { return pool_; }
    Executor& executor() { return executor_; }
    const std::atomic<bool>& cancelled() const { return cancelled_; }

private:
    BackendThread(int num_threads, std::vector<int> cores);

    void work();
    static void on_settled(napi_env env, napi_value, void* context, void* data);
    static void on_finalize(napi_env env, void* data, void* hint);
    static void on_teardown(void* data);

    std::vector<int> cores_;
    ThreadPool pool_;
    Executor executor_;
    napi_threadsafe_function settled_ = nullptr;
    /// Jobs whose promise is open; while there are any the event loop is kept alive.
    int64_t open_jobs_ = 0;
    bool torn_down_ = false;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::unique_ptr<Job>> queue_;
    bool closing_ = false;
    std::atomic<bool> cancelled_{false};
    std::thread thread_;
};

}  // namespace octavo
