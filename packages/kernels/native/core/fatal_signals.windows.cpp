#include <windows.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "fatal_signals.h"

namespace octavo {

namespace {

// The handler may only look at what needs no lock.
struct Mapping {
    std::atomic<uintptr_t> start{0};
    std::atomic<uintptr_t> end{0};
    std::atomic<const char*> path{nullptr};
};

constexpr size_t kMostMappings = 1024;
Mapping mappings[kMostMappings];
std::mutex changing;
bool is_watching = false;

void write_error(const char* text) {
    DWORD written = 0;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, static_cast<DWORD>(std::strlen(text)), &written, nullptr);
}

/// A page of a mapped file that cannot be read raises EXCEPTION_IN_PAGE_ERROR; its second parameter is the address.
LONG CALLBACK end_if_file_lost(EXCEPTION_POINTERS* exception) {
    const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
    if (record.ExceptionCode != EXCEPTION_IN_PAGE_ERROR || record.NumberParameters < 2) return EXCEPTION_CONTINUE_SEARCH;
    const uintptr_t at = record.ExceptionInformation[1];
    for (const Mapping& mapping : mappings) {
        if (at < mapping.start.load() || at >= mapping.end.load()) continue;
        const char* path = mapping.path.load();
        write_error("octavo: ");
        write_error(path == nullptr ? "a mapped file" : path);
        write_error(" was truncated, or its disk failed, while it was in use; the process ends\n");
        TerminateProcess(GetCurrentProcess(), kLostFileStatus);
    }
    return EXCEPTION_CONTINUE_SEARCH;
}

}  // namespace

void watch_mapping(const void* start, size_t bytes, const char* path) {
    const std::lock_guard<std::mutex> lock(changing);
    if (!is_watching) AddVectoredExceptionHandler(1, end_if_file_lost);
    is_watching = true;
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

// Nothing here can write to Node's descriptors, as `lock_open_file` says.
bool record_faults(int, bool on) { return !on; }

}  // namespace octavo
