#include "fatal_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace octavo {

namespace {

// Handlers may only look at what needs no lock.
constexpr size_t kMostRecords = 8;
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
    const char* path = watched_file_at(reinterpret_cast<uintptr_t>(info.si_addr));
    if (path == nullptr) return;
    write_line(STDERR_FILENO, "octavo: ", path, " was truncated, or its disk failed, while it was in use; the process ends");
    _exit(kLostFileStatus);
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

void handle_lost_files() {
    const std::lock_guard<std::mutex> lock(changing);
    handle_signal(signals[0]);
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
