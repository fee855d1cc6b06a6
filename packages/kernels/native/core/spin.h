#pragma once
#include <chrono>
#include <thread>

namespace octavo {

/// Long enough to bridge the gap between two ops of a step, short enough to give the core back between steps.
constexpr std::chrono::microseconds kSpinTime{80};
/// Most waits within an op are shorter; what lasts longer may wait for a thread that waits for this very core.
constexpr std::chrono::microseconds kSpinBeforeYielding{20};
constexpr int kPausesPerClockRead = 32;

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Whether `ready` came true while this thread span.
template <class Ready>
bool spin_until(const Ready& ready) {
    if (ready()) return true;
    const auto start = std::chrono::steady_clock::now();
    for (auto waited = start - start; waited < kSpinTime; waited = std::chrono::steady_clock::now() - start) {
        if (waited > kSpinBeforeYielding) std::this_thread::yield();
        for (int i = 0; i < kPausesPerClockRead; ++i) {
            pause();
            if (ready()) return true;
        }
    }
    return ready();
}

}  // namespace octavo
