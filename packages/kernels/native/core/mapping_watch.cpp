#include "fatal_signals.h"

#include <atomic>
#include <mutex>

namespace octavo {

namespace {

struct Mapping {
    std::atomic<uintptr_t> start{0};
    std::atomic<uintptr_t> end{0};
    std::atomic<const char*> path{nullptr};
};

constexpr size_t kMostMappings = 1024;
Mapping mappings[kMostMappings];
std::mutex changing;

}  // namespace

const char* watched_file_at(uintptr_t address) {
    for (const Mapping& mapping : mappings) {
        if (address < mapping.start.load() || address >= mapping.end.load()) continue;
        const char* path = mapping.path.load();
        return path == nullptr ? "a mapped file" : path;
    }
    return nullptr;
}

void watch_mapping(const void* start, size_t bytes, const char* path) {
    const std::lock_guard<std::mutex> lock(changing);
    handle_lost_files();
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

}  // namespace octavo
