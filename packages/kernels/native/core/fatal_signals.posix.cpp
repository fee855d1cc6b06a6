#include "fatal_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace octavo {

namespace {

// Handlers may only look at what needs no lock.
struct Mapping {
    std::atomic<uintptr_t> start{0};
    std::atomic<uintptr_t> end{0};
    std::atomic<const char*> path{nullptr};
};

constexpr size_t kMostMappings = 1024;
constexpr size_t kMostRecords = 8;
Mapping mappings[kMostMappings];
std::atomic<int> records[kMostRecords] = {-1, -1, -1, -1, -1, -1, -1, -1};

struct Signal {
    int number;
    const char* name;
    struct sigaction former;
    bool is_handled;
};
Signal signals[] = {{SIGBUS, "SIGBUS", {}, false}, {SIGSEGV, "SIGSEGV", {}, false}, {SIGILL, "SIGILL", {}, false},
                    {SIGFPE, "SIGFPE", {}, false}, {SIGABRT, "SIGABRT", {}, false}, {SIGTRAP, "SIGTRAP", {}, false}};

std::mutex changing;

/// One write for the whole line: other threads and processes write to the same descriptors.
void write_line(int descriptor, const char* first, const char* second, const char* third) {
    char line[4096];
    size_t length = 0;
    for (const char* part : {first, second, third}) {
        for (; *part != '\0' && length + 1 < sizeof line; ++part) line[length++] = *part;
    }
    line[length++] = '\n';
    static_cast<void>(!write(descriptor, line, length));
}

void record(const char* what, const char* name) {
    for (const std::atomic<int>& descriptor : records) {
        const int open = descriptor.load();
        if (open >= 0) write_line(open, what, name, "");
    }
}

void end_if_file_lost(const siginfo_t& info) {
    // Only the kernel's own signals say where.
    if (info.si_signo != SIGBUS || info.si_code <= 0) return;
    const uintptr_t at = reinterpret_cast<uintptr_t>(info.si_addr);
    for (const Mapping& mapping : mappings) {
        if (at < mapping.start.load() || at >= mapping.end.load()) continue;
        const char* path = mapping.path.load();
        write_line(STDERR_FILENO, "octavo: ", path == nullptr ? "a mapped file" : path,
                   " was truncated, or its disk failed, while it was in use; the process ends");
        _exit(kLostFileStatus);
    }
}

void handle(int number, siginfo_t* info, void* context) {
    end_if_file_lost(*info);
    for (Signal& signal : signals) {
        if (signal.number != number) continue;
        record("fault ", signal.name);
        const struct sigaction& former = signal.former;
        if ((former.sa_flags & SA_SIGINFO) != 0 && former.sa_sigaction != nullptr) {
            former.sa_sigaction(number, info, context);
        } else if (former.sa_handler == SIG_DFL) {
            struct sigaction standard = {};
            standard.sa_handler = SIG_DFL;
            sigaction(number, &standard, nullptr);
            raise(number);
        } else if (former.sa_handler != SIG_IGN) {
            former.sa_handler(number);
        }
        record("survived ", signal.name);
        return;
    }
}

/// Requires `changing`.
void handle_signal(Signal& signal) {
    if (signal.is_handled) return;
    signal.is_handled = true;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    // Without SA_NODEFER, a former handler's raise() would only end the process after it returned.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(signal.number, &action, &signal.former);
}

}  // namespace

void watch_mapping(const void* start, size_t bytes, const char* path) {
    const std::lock_guard<std::mutex> lock(changing);
    handle_signal(signals[0]);
    for (Mapping& mapping : mappings) {
        if (mapping.start.load() != 0) continue;
        mapping.path = path;
        // The end last: until then the range is empty.
        mapping.end = 0;
        mapping.start = reinterpret_cast<uintptr_t>(start);
        mapping.end = reinterpret_cast<uintptr_t>(start) + bytes;
        return;
    }
}

void unwatch_mapping(const void* start) {
    const std::lock_guard<std::mutex> lock(changing);
    for (Mapping& mapping : mappings) {
        if (mapping.start.load() != reinterpret_cast<uintptr_t>(start)) continue;
        mapping.end = 0;
        mapping.path = nullptr;
        mapping.start = 0;
        return;
    }
}

bool record_faults(int descriptor, bool on) {
    const std::lock_guard<std::mutex> lock(changing);
    for (Signal& signal : signals) handle_signal(signal);
    for (std::atomic<int>& slot : records) {
        if (slot.load() != (on ? -1 : descriptor)) continue;
        slot = on ? descriptor : -1;
        return true;
    }
    return false;
}

}  // namespace octavo
