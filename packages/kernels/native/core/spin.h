#pragma once
#include <chrono>
#include <thread>

namespace octavo {

/// Long enough to bridge the gap between two ops of a step, short enough to give the core back between steps.
constexpr std::chrono::microseconds kSpinTime{80};
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
    const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
    do {
        for (int i = 0; i < kPausesPerClockRead; ++i) {
            pause();
            if (ready()) return true;
        }
        // Whoever is to make it ready may wait for this very core.
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < deadline);
    return ready();
}

}  // namespace octavo
