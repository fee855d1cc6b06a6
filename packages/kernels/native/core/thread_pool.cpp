#include "thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "platform.h"
#include "spin.h"

namespace octavo {

namespace {

struct Range {
    int64_t first;
    int64_t end;
};

/// What is left of a run of chunks: its owner takes from the front, other threads steal from the back, a quarter at a time. Taking
/// waits for outstanding memory accesses, so it should be rare; what is taken last should be small.
class alignas(64) Share {
public:
    void set(Range range) { left_.store(pack(range), std::memory_order_relaxed); }
    Range take_first() {
        return take([](Range& left, int64_t count) { return Range{left.first, left.first += count}; });
    }
    Range take_last() {
        return take([](Range& left, int64_t count) { return Range{left.end -= count, left.end + count}; });
    }

private:
    static uint64_t pack(Range range) { return static_cast<uint64_t>(range.end) << 32 | static_cast<uint64_t>(range.first); }

    /// Empty when nothing is left.
    template <class Choose>
    Range take(const Choose& choose) {
        uint64_t left = left_.load(std::memory_order_relaxed);
        for (;;) {
            Range range{static_cast<int64_t>(left & 0xffffffffu), static_cast<int64_t>(left >> 32)};
            if (range.first >= range.end) return {0, 0};
            const Range taken = choose(range, (range.end - range.first + 3) / 4);
            if (left_.compare_exchange_weak(left, pack(range), std::memory_order_relaxed)) return taken;
        }
    }

    std::atomic<uint64_t> left_{0};
};

/// With more threads, some begin with the same share.
constexpr int kMostShares = 64;

}  // namespace

/// `region` counts regions ever started; a worker runs whenever it differs from the last one it saw. The job is written
/// before `region` is raised and read after the new value is seen; `running` reaching 0 publishes the workers' writes.
/// Flags for "asleep" are set under `mutex` before the final look at the condition, so a wake-up cannot be missed.
struct ThreadPool::State {
    std::vector<std::thread> workers;
    std::mutex region_mutex;

    const FunctionRef<void(int, int)>* job = nullptr;
    bool stopping = false;
    alignas(64) std::atomic<uint64_t> region{0};
    alignas(64) std::atomic<int> running{0};
    alignas(64) std::atomic<int> sleeping_workers{0};
    std::atomic<bool> sleeping_caller{false};
    std::mutex mutex;
    std::condition_variable wake_workers;
    std::condition_variable wake_caller;

    int size() const { return static_cast<int>(workers.size()) + 1; }

    void start_region() {
        region.fetch_add(1, std::memory_order_seq_cst);
        if (sleeping_workers.load(std::memory_order_seq_cst) > 0) {
            std::lock_guard<std::mutex> lock(mutex);
            wake_workers.notify_all();
        }
    }

    void await_region(uint64_t seen) {
        const auto started = [&] { return region.load(std::memory_order_acquire) != seen; };
        if (spin_until(started)) return;
        std::unique_lock<std::mutex> lock(mutex);
        sleeping_workers.fetch_add(1, std::memory_order_seq_cst);
        wake_workers.wait(lock, [&] { return region.load(std::memory_order_seq_cst) != seen; });
        sleeping_workers.fetch_sub(1, std::memory_order_seq_cst);
    }

    void finish_part() {
        if (running.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
        if (sleeping_caller.load(std::memory_order_seq_cst)) {
            std::lock_guard<std::mutex> lock(mutex);
            wake_caller.notify_one();
        }
    }

    void await_parts() {
        if (spin_until([&] { return running.load(std::memory_order_acquire) == 0; })) return;
        std::unique_lock<std::mutex> lock(mutex);
        sleeping_caller.store(true, std::memory_order_seq_cst);
        wake_caller.wait(lock, [&] { return running.load(std::memory_order_seq_cst) == 0; });
        sleeping_caller.store(false, std::memory_order_seq_cst);
    }

    void stop() {
        stopping = true;
        start_region();
        for (std::thread& worker : workers) {
            if (worker.joinable()) worker.join();
        }
    }

    void work(int index, const std::vector<int>& cores) noexcept {
        run_on_cores(cores);
        for (uint64_t seen = 0;;) {
            await_region(seen);
            ++seen;
            if (stopping) return;
            (*job)(index, size());
            finish_part();
        }
    }
};

ThreadPool::ThreadPool(int num_threads, const std::vector<int>& cores) : state_(new State) {
    const int num_workers = std::max(num_threads, 1) - 1;
    state_->workers.resize(static_cast<size_t>(num_workers));
    try {
        for (int i = 0; i < num_workers; ++i) {
            state_->workers[static_cast<size_t>(i)] = std::thread([this, i, cores] { state_->work(i + 1, cores); });
        }
    } catch (...) {
        state_->stop();
        delete state_;
        throw;
    }
}

ThreadPool::~ThreadPool() {
    state_->stop();
    delete state_;
}

int ThreadPool::size() const { return state_->size(); }

void ThreadPool::run(FunctionRef<void(int, int)> fn) {
    std::lock_guard<std::mutex> one_region(state_->region_mutex);
    if (state_->workers.empty()) {
        fn(0, 1);
        return;
    }
    state_->job = &fn;
    state_->running.store(size() - 1, std::memory_order_relaxed);
    state_->start_region();
    [&]() noexcept { fn(0, size()); }();
    state_->await_parts();
}

void ThreadPool::parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t, int)> fn) {
    if (count <= 0) return;
    // Chunks are counted in 32 bits.
    grain = std::max({grain, int64_t{1}, count >> 31});
    if (size() == 1 || count <= grain) {
        std::lock_guard<std::mutex> one_region(state_->region_mutex);
        for (int64_t begin = 0; begin < count; begin += grain) fn(begin, std::min(begin + grain, count), 0);
        return;
    }
    const int64_t num_chunks = (count + grain - 1) / grain;
    const int num_shares = std::min(size(), kMostShares);
    Share shares[kMostShares];
    for (int i = 0; i < num_shares; ++i) shares[i].set({num_chunks * i / num_shares, num_chunks * (i + 1) / num_shares});
    run([&](int thread, int) {
        for (int i = 0; i < num_shares; ++i) {
            Share& share = shares[(thread + i) % num_shares];
            for (;;) {
                const Range chunks = i == 0 ? share.take_first() : share.take_last();
                if (chunks.first == chunks.end) break;
                fn(chunks.first * grain, std::min(chunks.end * grain, count), thread);
            }
        }
    });
}

}  // namespace octavo
