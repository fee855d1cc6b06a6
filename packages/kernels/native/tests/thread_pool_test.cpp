// The pool under uneven work, sleep and several callers. Meant for the thread sanitizer as well.
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../core/thread_pool.h"
#include "support/check.h"

namespace octavo::test {

namespace {

void check_every_thread_runs_once(int size) {
    ThreadPool pool(size);
    CHECK(pool.size() == size);
    const int regions = quick() ? 300 : 3000;
    // Plain integers: only the pool's own ordering makes this safe.
    std::vector<int> runs(static_cast<size_t>(size) * 16);
    bool caller_is_thread_0 = true;
    const std::thread::id caller = std::this_thread::get_id();
    for (int i = 0; i < regions; ++i) {
        pool.run([&](int thread, int count) {
            if (count == size) ++runs[static_cast<size_t>(thread) * 16];
            if (thread == 0) caller_is_thread_0 = caller_is_thread_0 && std::this_thread::get_id() == caller;
        });
    }
    for (int thread = 0; thread < size; ++thread) CHECK(runs[static_cast<size_t>(thread) * 16] == regions);
    CHECK(caller_is_thread_0);
}

void check_every_index_once(int size) {
    ThreadPool pool(size);
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1000}}) {
        for (const int64_t grain : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{5000}}) {
            std::vector<int> visits(static_cast<size_t>(count));
            std::atomic<bool> sound{true};
            pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int thread) {
                const int64_t chunk = std::max<int64_t>(grain, 1);
                const bool whole = begin % chunk == 0 && (end % chunk == 0 || end == count);
                // A quarter of a share at most, a share being what the threads have of all chunks.
                const int64_t most_of_share = ((count + chunk - 1) / chunk + size - 1) / size;
                const int64_t most = (most_of_share + 3) / 4 * chunk;
                if (begin >= end || end - begin > most || !whole || thread < 0 || thread >= size) sound = false;
                for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
            });
            for (const int visit : visits) CHECK(visit == 1);
            CHECK(sound.load());
        }
    }
}

/// Long pauses on either side put workers and the caller to sleep; both must wake.
void check_sleep() {
    ThreadPool pool(3);
    int64_t total = 0;
    const int rounds = quick() ? 10 : 60;
    for (int i = 0; i < rounds; ++i) {
        std::vector<int64_t> parts(3 * 16);
        pool.run([&](int thread, int) {
            if (thread == i % 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            parts[static_cast<size_t>(thread) * 16] = thread + 1;
        });
        for (const int64_t part : parts) total += part;
        if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(total == 6 * rounds);
}

void check_several_callers() {
    ThreadPool pool(2);
    const int rounds = quick() ? 100 : 1000;
    int64_t shared = 0;
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller) {
        callers.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                // Regions exclude each other, so thread 0 of each may write without a lock.
                pool.run([&](int thread, int) {
                    if (thread == 0) ++shared;
                });
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(shared == 3 * rounds);
}

void check_callables() {
    ThreadPool pool(2);
    std::atomic<int> calls{0};
    const std::function<void(int, int)> stored = [&](int, int) { ++calls; };
    pool.run(stored);
    struct Counter {
        std::atomic<int>& calls;
        void operator()(int, int) { ++calls; }
    };
    Counter counter{calls};
    pool.run(counter);
    CHECK(calls == 4);
    CHECK(ThreadPool(0).size() == 1);
    CHECK(ThreadPool(-3).size() == 1);
}

void check_short_lives() {
    for (int i = 0; i < (quick() ? 20 : 200); ++i) {
        ThreadPool pool(3);
        if (i % 2 == 0) pool.run([](int, int) {});
    }
    CHECK(true);
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo::test;
    for (int size = 1; size <= 4; ++size) {
        check_every_thread_runs_once(size);
        check_every_index_once(size);
    }
    check_sleep();
    check_several_callers();
    check_callables();
    check_short_lives();
    return finish("thread_pool_test");
}
